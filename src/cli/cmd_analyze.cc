#include <future>

#include "cli/commands.h"
#include "cli/paths.h"
#include "cli/questions.h"
#include "exporters/table_text.h"
#include "exporters/table_words.h"
#include "model/run_extent.h"
#include "profile/shared_rows.h"

namespace stageline {
namespace {

// The runs that an analysis reads. They must live while it works.
struct Runs {
  Trace trace, control, test;
};

Status open_inputs(const Arguments& arguments, const Terminal& terminal, const std::vector<const Analysis*>& chosen,
                   Runs& runs, AnalysisInput& input) {
  const AnalysisNeeds needs = chosen[0]->needs;
  for (const Analysis* analysis : chosen)
    if ((analysis->needs == AnalysisNeeds::kTwoRuns || analysis->needs == AnalysisNeeds::kFiles) && chosen.size() > 1)
      return make_error(ErrorCode::kUsage, analysis->name + " has an input of its own; ask it alone");
  input.paths.assign(arguments.operands.begin() + 1, arguments.operands.end());
  if (needs == AnalysisNeeds::kTwoRuns) {
    if (!input.options.has("control") || !input.options.has("test") || !input.paths.empty())
      return make_error(ErrorCode::kUsage, std::string(chosen[0]->name) + " compares two runs",
                        std::string("stageline analyze ") + chosen[0]->name + " --control A --test B");
    for (const char* side : {"control", "test"}) {
      TRY(run, open_run(arguments, terminal, {input.options.text(side)}, chosen[0]->compat));
      (side[0] == 'c' ? runs.control : runs.test) = std::move(*run);
    }
    input.control = &runs.control;
    input.test = &runs.test;
    return {};
  }
  if (input.paths.empty())
    return make_error(ErrorCode::kUsage, "something is missing: stageline analyze ANALYSIS PATH…");
  if (needs == AnalysisNeeds::kFiles) return {};
  const bool across = std::ranges::any_of(chosen, [](const Analysis* a) { return a->across_ranks; });
  const Clocks clocks = across ? Clocks::kCompared : Clocks::kRaw;
  Arguments reading = arguments;
  if (!reading.has("pp")) reading.drop("ep");  // an option of the analysis, and no layout of ranks
  TRY_OK(take(open_run(reading, terminal, input.paths, chosen[0]->compat, clocks), runs.trace));
  input.trace = &runs.trace;
  for (const Analysis* analysis : chosen)
    if (!suits(*analysis, runs.trace)) {
      std::string others;  // of the same subject, by their names: "stragglers" and "potential-stragglers"
      for (const Analysis* other : analyses())
        if (other->name.find(analysis->name.substr(0, analysis->name.size() - 1)) != std::string::npos &&
            suits(*other, runs.trace))
          append_item(others, other->name);
      return make_error(ErrorCode::kBadInput, analysis->name + " " + needs_text(analysis->needs),
                        "it was read as " + runs.trace.format + "; " +
                            (others.empty() ? "stageline info lists its contents" : "it has an answer to " + others),
                        {input.paths[0]});
    }
  return {};
}

// Answers of several analyses in their order. In HTA's form the layout of a rank's rows is most of their work, so they
// share it and work at the same time.
class Answers {
 public:
  Answers(const std::vector<const Analysis*>& chosen, const AnalysisInput& input)
      : chosen_(chosen), input_(input), shares_(input.hta && chosen.size() > 1 && thread_count() > 1) {}
  Result<AnalysisResult> next() {
    const size_t k = asked_++;
    if (!shares_) return chosen_[k]->run(input_);
    if (k % kTogether == 0) begin(k);
    return begun_[k % kTogether].get();
  }

 private:
  static constexpr size_t kTogether = 8;  // memory holds the work of this many

  void begin(size_t first) {
    begun_.clear();
    const size_t count = std::min(kTogether, chosen_.size() - first);
    shared_.emplace(count + 1, std::max(2, thread_count()));
    input_.run();
    {  // makes the facts that all share before they start; an error comes again from each of them
      SharedRows::Seat seat(*shared_, count);
      static_cast<void>(make_torch_run(*input_.trace, {input_.hta, input_.include_last_step, &seat}));
    }
    for (size_t k = 0; k < count; ++k)
      begun_.push_back(std::async(std::launch::async, [this, k, analysis = chosen_[first + k]] {
        SharedRows::Seat seat(*shared_, k);
        AnalysisInput own = input_;
        own.rows = &seat;
        return analysis->run(own);
      }));
  }

  const std::vector<const Analysis*>& chosen_;
  const AnalysisInput& input_;
  const bool shares_;
  size_t asked_ = 0;
  std::optional<SharedRows> shared_;
  std::vector<std::future<Result<AnalysisResult>>> begun_;  // their ends are awaited before what they use goes
};

// Writes an answer as one object, table by table, because there may be hundreds of thousands of rows.
void write_json(const Analysis& analysis, const AnalysisResult& result, OutputFile& out) {
  JsonWriter json;
  json.begin_object().field("analysis", analysis.name).each("tables", result.tables, [&](const Table& table) {
    append_table_json(json, table, [&](JsonWriter& written) { out.write(written.take()); });
  });
  append_notes(json, result.notes);  // what the answer assumes or leaves out; those on the input are of `info`
  json.end_object();
  out.write(json.text());
}

// How tables are printed.
struct TextStyle {
  size_t max_rows = SIZE_MAX;
  bool whole_names = false, titled = false;  // titled: there are several tables
  int64_t origin_ns = 0;
};

void write_text(const Table& table, const TextStyle& style, const Terminal& terminal, OutputFile& out) {
  // An empty table prints its title itself.
  if (style.titled && table.row_count() > 0)
    out.write(table_title(table, terminal.chinese()) + (terminal.chinese() ? "：\n" : ":\n"));
  out.write_painted(format_table_text(table, style.whole_names ? 0 : terminal.table_width, terminal.colour_out,
                                      style.max_rows, style.whole_names, style.origin_ns, terminal.chinese()));
}

// Writes tables with blank lines between them, and one before them unless they are the first.
void write_tables(const std::vector<Table>& tables, bool csv, const TextStyle& style, const Terminal& terminal,
                  bool first, OutputFile& out) {
  for (const Table& table : tables) {
    if (!first) out.write("\n");
    first = false;
    if (csv) write_table_csv(table, [&](const std::string& text) { out.write(text); });
    else write_text(table, style, terminal, out);
  }
}

}  // namespace

Result<int> run_analyze(const Arguments& given) {
  TRY(terminal, terminal_for(given));
  TRY(chosen, chosen_analyses(given.operands[0]));
  const Arguments arguments = with_ranks(given, *chosen);
  const std::string only = arguments.get("table");
  if (!only.empty()) TRY_OK(check_table(*chosen, only));
  const std::string format = arguments.get("format", "text");
  TRY_OK(check_format(*chosen, format, only));
  // On a terminal, a table of thousands of rows is cut, because it is unreadable there. CSV and JSON always have all
  // rows.
  TRY(row_limit, arguments.integer("rows", terminal->table_width > 0 ? 40 : 100, 0, INT64_MAX));
  TextStyle style;
  if (*row_limit > 0) style.max_rows = static_cast<size_t>(*row_limit);
  style.whole_names = arguments.has("wide");
  TRY(input, analysis_input(arguments, *chosen));
  TRY(out, open_output(arguments.get("output", "-"), arguments.operands));
  if (arguments.has("overlay")) TRY_OK(check_writable(arguments.get("overlay"), arguments.operands));

  input->rows_later = true;
  input->wants_overlay = arguments.has("overlay");
  Runs runs;
  TRY_OK(open_inputs(arguments, *terminal, *chosen, runs, *input));
  if (format == "text") style.origin_ns = axis_zero_ns(runs.trace);
  Diagnostics notes = runs.trace.diagnostics;
  notes.merge(runs.control.diagnostics);
  notes.merge(runs.test.diagnostics);
  Diagnostics own_notes;  // for all analyses together: a note that several of them make appears once
  bool first = true;
  Answers answers(*chosen, *input);
  for (const Analysis* analysis : *chosen) {
    TRY(result, answers.next());
    merge_notes(own_notes, result->notes);
    if (!only.empty()) std::erase_if(result->tables, [&](const Table& table) { return table.name() != only; });
    if (arguments.has("overlay") && result->overlay)
      TRY_OK(write_overlay(runs.trace, *result->overlay, arguments.get("overlay")));
    if (input->foreign) {
      out->write(terminal_text(result->foreign, true));
      continue;
    }
    style.titled = chosen->size() > 1 || result->tables.size() > 1;
    if (format == "json") {
      // Several answers are the elements of one array.
      if (chosen->size() > 1) out->write(first ? "[\n" : ",\n");
      write_json(*analysis, *result, *out);
      if (chosen->size() == 1) out->write("\n");
    } else {
      write_tables(result->tables, format == "csv", style, *terminal, first, *out);
    }
    first = first && format != "json" && result->tables.empty();
  }
  if (format == "json" && !input->foreign && chosen->size() > 1) out->write("\n]\n");
  TRY_OK(out->commit());
  const std::string path = input->paths.empty() ? input->options.text("test") : input->paths[0];
  print_notes(*terminal, notes, words("notes.input", Args().set("path", shell_word(path))),
              {"stageline info", "stageline info"});
  print_notes(*terminal, own_notes, words("notes.answer"), words("notes.rest.json"), true);
  return kExitGood;
}

}  // namespace stageline
