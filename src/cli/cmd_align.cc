#include "cli/commands.h"
#include "cli/open_run.h"
#include "cli/paths.h"
#include "engine/model_tables.h"
#include "engine/one_clock.h"
#include "exporters/table_text.h"

namespace stageline {

Result<int> run_align(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "csv" && format != "json")
    return make_error(ErrorCode::kUsage, "align comes as text, csv or json, not \"" + format + "\"");
  AlignOptions options;
  TRY(mode, parse_align_mode(arguments.get("align", "auto")));
  if (*mode == AlignMode::kNever)
    return make_error(ErrorCode::kUsage, "align measures clocks: --align never leaves nothing to do");
  options.mode = *mode;
  for (const std::string& text : arguments.all("align-on")) {
    TRY(hand, parse_align_on(text));
    options.by_hand.push_back(*hand);
  }
  TRY(out, open_output(arguments.get("output", "-"), arguments.operands));
  TRY(trace, open_run(arguments, *terminal, arguments.operands));
  TRY(alignment, measure_clocks(*trace, options));
  const bool trusted = arguments.has("trust-clocks");
  const Table table = format == "text" ? clock_summary_table(*trace, alignment->clocks, trusted)
                                       : clock_table(*trace, alignment->clocks, trusted);
  if (format == "json") {
    JsonWriter json;
    json.begin_object();
    json.key("tables").begin_array();
    append_table_json(json, table);
    json.end_array().end_object();
    out->write(json.text() + "\n");
  } else if (format == "csv") {
    out->write(format_table_csv(table));
  } else {
    out->write_painted(
        format_table_text(table, terminal->table_width, terminal->colour_out, SIZE_MAX, false, 0, terminal->chinese()));
  }
  TRY_OK(out->commit());
  for (const Diagnostic& d : alignment->notes.items())
    if (d.severity == Severity::kInfo) note(*terminal, message_text(*terminal, d));
  Diagnostics notes = trace->diagnostics;
  notes.merge(alignment->notes);
  print_notes(*terminal, notes, arguments.operands[0]);
  if (alignment->untied.empty() || trusted) return kExitGood;
  return make_error(
      ErrorCode::kUnavailable,
      "some ranks could not be aligned with the clock of rank " + std::to_string(trace->parts.front().rank),
      "add --trust-clocks to keep their recorded clocks");
}

}  // namespace stageline
