#include "engine/model_tables.h"

#include <algorithm>
#include <cmath>

#include "facts/pipeline_facts.h"
#include "model/intervals.h"
#include "pipeline/measure/link_transfers.h"

namespace stageline {
namespace {

using Value = Table::Value;

// The model's −1 (kUnknown) is null in a table, so that no program takes it for a stage.

}  // namespace

Table cells_table(const Trace& trace) {
  Table table(
      "cells", "Cells",
      {{"step", "step", ColumnType::kInteger, "Training step; null when the source does not say."},
       {"dp", "dp", ColumnType::kInteger, "Data-parallel index of the rank."},
       {"stage", "stage", ColumnType::kInteger, "Pipeline stage of the rank."},
       {"rank", "rank", ColumnType::kInteger, "Global rank."},
       {"machine", "machine", ColumnType::kInteger, "Index of the machine, in natural order of their names."},
       {"kind", "kind", ColumnType::kText, "F, B, I, W, F&B, SF, RF, SB, RB, C, O or other; see docs/model.md."},
       {"chunk", "chunk", ColumnType::kInteger, "Model chunk (virtual stage) within the rank."},
       {"micro_batch", "micro-batch", ColumnType::kInteger, "Micro-batch index within the step."},
       {"start_ns", "start", ColumnType::kTime, "Start on the rank's own clock."},
       {"dur_ns", "duration", ColumnType::kDuration, "End minus start."},
       {"name", "name", ColumnType::kText, "Name of the source slice; empty when the cell has none."}});
  const Cells& cells = trace.cells;
  for (size_t i = 0; i < cells.size(); ++i) {
    const Part& part = trace.parts[cells.part[i]];
    std::vector<Value> row;
    row.reserve(11);
    row.emplace_back(known_integer(cells.step[i]));
    row.emplace_back(known_integer(part.dp));
    row.emplace_back(known_integer(part.stage));
    row.emplace_back(int64_t{part.rank});
    row.emplace_back(known_integer(part.machine));
    row.emplace_back(std::string(kind_code(cells.kind[i])));
    row.emplace_back(known_integer(cells.chunk[i]));
    row.emplace_back(known_integer(cells.micro_batch[i]));
    row.emplace_back(cells.start_ns[i]);
    row.emplace_back(cells.dur_ns(i));
    row.emplace_back(std::string(trace.slice_name(cells.at(i))));
    table.add_row(std::move(row));
  }
  return table;
}

Table devices_table(const Trace& trace) {
  Table table("devices", "Devices",
              {{"rank", "rank", ColumnType::kInteger, "Global rank."},
               {"machine", "machine", ColumnType::kInteger, "Index of the machine, in natural order of their names."},
               {"machine_name", "host", ColumnType::kText, "Folder or host name; may be empty."},
               {"device", "device", ColumnType::kInteger, "Index of the device within its machine."},
               {"stage", "stage", ColumnType::kInteger, "Pipeline stage."},
               {"dp", "dp", ColumnType::kInteger, "Data-parallel index."},
               {"source", "source", ColumnType::kText, "The file this rank was read from."},
               {"slices", "slices", ColumnType::kInteger, "Number of slices read from its file."},
               {"cells", "cells", ColumnType::kInteger, "Number of pipeline cells recognised in them."},
               {"start_ns", "start", ColumnType::kTime,
                "Earliest start of its cells, or of its slices where it has no cells, on its own clock."},
               {"end_ns", "end", ColumnType::kTime,
                "Latest end of its cells, or of its slices where it has no cells, on its own clock."}});
  struct Sum {
    int64_t cells = 0;
    Span span;
  };
  std::vector<Sum> sums(trace.parts.size());
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    Sum& sum = sums[trace.cells.part[i]];
    ++sum.cells;
    sum.span.add(trace.cells.start_ns[i], trace.cells.end_ns[i]);
  }
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    const Part& part = trace.parts[p];
    Sum& sum = sums[p];
    if (sum.cells == 0)
      for (size_t s = 0; s < part.slices.size(); ++s)
        sum.span.add(part.slices.start_ns[s], part.slices.start_ns[s] + part.slices.dur_ns[s]);
    const bool timed = sum.span.any();
    table.add_row({int64_t{part.rank}, known_integer(part.machine), part.machine_name, known_integer(part.device),
                   known_integer(part.stage), known_integer(part.dp), part.source, std::ssize(part.slices), sum.cells,
                   timed ? sum.span.start_ns : kNullInteger, timed ? sum.span.end_ns : kNullInteger});
  }
  return table;
}

bool is_of_clocks(const Diagnostic& diagnostic) { return diagnostic.name.starts_with("clock."); }

Table diagnostics_table(const Diagnostics& diagnostics) {
  Table table("diagnostics", "Flaws and notes",
              {{"name", "name", ColumnType::kText, "Stable dotted name of the kind of problem."},
               {"severity", "severity", ColumnType::kText, "info, warning (nothing was lost) or loss."},
               {"count", "count", ColumnType::kInteger, "How often the problem was seen."},
               {"file", "file", ColumnType::kText, "File in which the problem was seen first; may be empty."},
               {"line", "line", ColumnType::kInteger, "Line in that file, from 1; null when unknown."},
               {"byte", "byte", ColumnType::kInteger, "Byte in that file, from 0; null when unknown."},
               {"message", "message", ColumnType::kText, "The problem, and what was kept of the input."}});
  for (const Diagnostic& d : diagnostics.items())
    table.add_row({d.name, std::string(severity_name(d.severity)), d.count, d.first.file,
                   d.first.line > 0 ? d.first.line : kNullInteger, d.first.byte >= 0 ? d.first.byte : kNullInteger,
                   d.message.en});
  return table;
}

Table steps_table(const Run& run) {
  const Trace& trace = run.trace();
  Table table(
      "steps", "Steps",
      {{"step", "step", ColumnType::kInteger, "Number of the training step."},
       {"rank", "rank", ColumnType::kInteger, "Global rank; null in a row that describes the step over all ranks."},
       {"start_ns", "start", ColumnType::kTime,
        "Earliest start in the step; in the row of one rank, on that rank's own clock."},
       {"dur_ns", "duration", ColumnType::kDuration, "Latest end in the step minus the earliest start."},
       {"pipeline_ns", "pipeline", ColumnType::kDuration,
        "Latest end minus earliest start of the compute cells alone."},
       {"outlier", "outlier", ColumnType::kInteger,
        "1 where the step is so long that mean values leave it out, else 0; null where nothing decided this."}});
  if (trace.cells.size() > 0) {
    const PipelineSums& sums = sums_of(run);
    for (const StepSums& step : sums.steps)
      table.add_row({known_integer(step.step), kNullInteger, step.start_ns, step.span_ns(), step.pipeline_span_ns(),
                     int64_t{sums.is_outlier(step.step)}});
    return table;
  }
  const SliceFilter& filter = trace.slice_filter;
  for (const Part& part : trace.parts) {
    if (!filter.ranks.empty() && !std::binary_search(filter.ranks.begin(), filter.ranks.end(), part.rank)) continue;
    for (const ProfilerStep& step : part.steps)
      if (step.number >= filter.first_step && step.number <= filter.last_step)
        table.add_row(
            {step.number, int64_t{part.rank}, step.start_ns, step.end_ns - step.start_ns, kNullInteger, kNullInteger});
  }
  return table;
}

Table messages_table(const Run& run) {
  const Trace& trace = run.trace();
  Table table("messages", "Messages",
              {{"step", "step", ColumnType::kInteger, "Training step; null when the source does not say."},
               {"src_rank", "from", ColumnType::kInteger, "Global rank of the sender."},
               {"dst_rank", "to", ColumnType::kInteger, "Global rank of the receiver."},
               {"direction", "direction", ColumnType::kText,
                "forward where the message carries activations, backward where it carries gradients."},
               {"transfer_ns", "transfer", ColumnType::kDuration,
                "Time that the message took; a value below 0 is an error of the clocks."},
               {"bytes", "bytes", ColumnType::kInteger, "Size of the message; null when unknown."},
               {"evidence", "evidence", ColumnType::kText,
                "messages where sends and receives were recorded; gaps where the message is the time from the end of a "
                "cell to the start of the one that waited."}});
  if (trace.cells.size() == 0) return table;
  const RunGraph& made = graph_of(run, LaunchRule::kInOrder);
  if (!made.graph) return table;
  const LinkTransfers transfers = find_transfers(trace, *made.graph);
  const std::string evidence = transfers.evidence == LinkEvidence::kMessages ? "messages" : "gaps";
  for (size_t i = 0; i < transfers.size(); ++i) {
    const LinkTransfer t = transfers.at(i);
    table.add_row({known_integer(t.step), int64_t{trace.parts[t.from_part].rank}, int64_t{trace.parts[t.to_part].rank},
                   std::string(t.forward ? "forward" : "backward"), whole_ns(t.ns),
                   t.bytes < 0 ? kNullInteger : std::llround(t.bytes), evidence});
  }
  return table;
}

}  // namespace stageline
