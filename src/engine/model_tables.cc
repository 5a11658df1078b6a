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
  Table table(declared_table("run/cells"));
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
  Table table(declared_table("run/devices"));
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
  Table table(declared_table("run/diagnostics"));
  for (const Diagnostic& d : diagnostics.items())
    table.add_row({d.name, std::string(severity_name(d.severity)), d.count, d.first.file,
                   d.first.line > 0 ? d.first.line : kNullInteger, d.first.byte >= 0 ? d.first.byte : kNullInteger,
                   d.message.en});
  return table;
}

Table steps_table(const Run& run) {
  const Trace& trace = run.trace();
  Table table(declared_table("run/steps"));
  if (trace.cells.size() > 0) {
    const PipelineSums& sums = sums_of(run);
    for (const StepSums& step : sums.steps)
      table.add_row({known_integer(step.step), kNullInteger, step.start_ns, step.span_ns(), step.pipeline_span_ns(),
                     int64_t{sums.is_outlier(step.step)}});
    return table;
  }
  const SliceFilter& filter = trace.slice_filter;
  for (const Part& part : trace.parts) {
    if (!filter.ranks.empty() && !std::ranges::binary_search(filter.ranks, part.rank)) continue;
    for (const ProfilerStep& step : part.steps)
      if (step.number >= filter.first_step && step.number <= filter.last_step)
        table.add_row(
            {step.number, int64_t{part.rank}, step.start_ns, step.end_ns - step.start_ns, kNullInteger, kNullInteger});
  }
  return table;
}

Table messages_table(const Run& run) {
  const Trace& trace = run.trace();
  Table table(declared_table("run/messages"));
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
