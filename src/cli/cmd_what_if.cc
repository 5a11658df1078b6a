#include "base/output_file.h"
#include "base/terminal_text.h"
#include "cli/commands.h"
#include "cli/run_common.h"
#include "cli/what_if_question.h"
#include "cli/what_if_text.h"
#include "diagnosis/what_if/what_if_answer.h"
#include "exporters/table_text.h"

namespace stageline {
namespace {

int run_what_if(const Arguments& arguments) {
  Result<Terminal> terminal = terminal_for(arguments);
  if (!terminal) return fail(terminal.error());
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "csv" && format != "json")
    return fail({ErrorCode::kUsage, "what-if comes as text, csv or json, not \"" + format + "\"", {}, ""});
  Result<WhatIfQuestion> ask = what_if_question(arguments);
  if (!ask) return fail(ask.error());
  if (Status s = check_writable(arguments.get("output", "-"), arguments.operands); !s) return fail(s.error());
  Result<Trace> trace = open_run(arguments, *terminal, arguments.operands, "", Clocks::kCompared);
  if (!trace) return fail(trace.error());
  Diagnostics notes;
  const Run run(*trace);
  Result<WhatIf> model = what_if_of(run, notes);
  if (!model) return fail(model.error());
  Result<FixList> list = price_question(*model, *ask);
  if (!list) return fail(list.error());
  Result<OutputFile> out = open_output(arguments.get("output", "-"), arguments.operands);
  if (!out) return fail(out.error());
  if (format == "text") {
    out->write(terminal_text(what_if_text(*model, *list, *terminal), true));
  } else {
    const std::vector<Table> tables = what_if_tables(*model, *list);
    if (format == "csv")
      out->write(format_table_csv(tables[1]));
    else
      out->write(what_if_json(*list, tables) + "\n");
  }
  if (Status s = out->commit(); !s) return fail(s.error());
  for (const Diagnostic& d : notes.items())
    if (d.severity == Severity::kInfo) note(*terminal, message_text(*terminal, d));
  Diagnostics flaws = trace->diagnostics;
  flaws.merge(notes);
  print_notes(*terminal, flaws, arguments.operands[0]);
  return kExitGood;
}

}  // namespace

Command what_if_command() {
  return {"what-if",
          {"PATH…", 1, -1},
          "Simulate fixes of a run and estimate what each would save",
          "Simulates the run with balanced stages, replaced slow ranks, other schedules at the same memory, and "
          "more micro-batches. Also simulates it without slow links, launch delays and jitter, and with the best "
          "changes together. Sorts by the saving per step. --scale, --schedule, --micro-batches and --latency "
          "describe a change of yours; all of them apply together.",
          with_open("scale schedule chunks group micro-batches latency layers more-memory json format output align "
                    "trust-clocks align-on"),
          run_what_if,
          {{"scale", "KEY=VALUE,…",
            "Scale or set the time of these cells: stage=3,kind=F,by=0.9 or rank=5,set=3ms; keys stage, rank, dp, "
            "kind, chunk, micro-batch, step; may be repeated"},
           {"layers", "N | N,N,…", "Layers of the model, or of each stage as they are split now; default equal on all"},
           {"more-memory", "", "Also try orders that need more activation memory than the present one"},
           {"schedule", "NAME", "Simulate this schedule (see stageline help schedules)"},
           {"chunks", "V", "Chunks a rank of --schedule"},
           {"group", "G", "Micro-batches that take turns on a chunk, of --schedule"},
           {"micro-batches", "M", "Simulate this number of micro-batches per step, each as recorded"},
           {"latency", "L", "Simulate this time for every message; without a unit, ms"},
           {"format", "KIND", "text (default), csv: the table of fixes, or json: all tables", "text,csv,json"}}};
}

}  // namespace stageline
