#include "base/json_writer.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/run_common.h"
#include "engine/clock_table.h"
#include "engine/one_clock.h"
#include "exporters/table_text.h"

namespace stageline {

int run_align(const Arguments& arguments) {
  Result<Terminal> terminal = terminal_for(arguments);
  if (!terminal) return fail(terminal.error());
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "csv" && format != "json")
    return fail(make_error(ErrorCode::kUsage, "align comes as text, csv or json, not \"" + format + "\""));
  AlignOptions options;
  Result<AlignMode> mode = parse_align_mode(arguments.get("align", "auto"));
  if (!mode) return fail(mode.error());
  if (*mode == AlignMode::kNever)
    return fail(make_error(ErrorCode::kUsage, "align measures clocks: --align never leaves nothing to do"));
  options.mode = *mode;
  for (const std::string& text : arguments.all("align-on")) {
    Result<align::ByHand> hand = parse_align_on(text);
    if (!hand) return fail(hand.error());
    options.by_hand.push_back(*hand);
  }
  Result<OutputFile> out = open_output(arguments.get("output", "-"), arguments.operands);
  if (!out) return fail(out.error());
  Result<Trace> trace = open_run(arguments, *terminal, arguments.operands);
  if (!trace) return fail(trace.error());
  Result<ClockAlignment> alignment = measure_clocks(*trace, options);
  if (!alignment) return fail(alignment.error());
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
  if (Status s = out->commit(); !s) return fail(s.error());
  for (const Diagnostic& d : alignment->notes.items())
    if (d.severity == Severity::kInfo) note(*terminal, message_text(*terminal, d));
  Diagnostics notes = trace->diagnostics;
  notes.merge(alignment->notes);
  print_notes(*terminal, notes, arguments.operands[0]);
  if (alignment->untied.empty() || trusted) return kExitGood;
  return fail(
      make_error(ErrorCode::kUnavailable,
                 "some ranks could not be aligned with the clock of rank " + std::to_string(trace->parts.front().rank),
                 "add --trust-clocks to keep their recorded clocks"));
}

}  // namespace stageline
