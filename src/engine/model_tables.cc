#include "engine/model_tables.h"

#include "facts/pipeline_facts.h"
#include "model/intervals.h"
#include "pipeline/measure/link_transfers.h"

namespace stageline {
namespace {

using Value = Table::Value;

// The model's −1 (kUnknown) is null in a table, so that no program takes it for a stage.

// The first timestamp of a part's cells, and of each of its steps.
struct StampsOfPart {
  int64_t first_ns = INT64_MAX;
  std::vector<std::pair<int64_t, int32_t>> steps;  // (first timestamp, number), ordered by timestamp
};

std::vector<StampsOfPart> stamps_of(const Trace& trace) {
  std::vector<StampsOfPart> out(trace.parts.size());
  const Cells& cells = trace.cells;
  for (size_t i = 0; i < cells.size(); ++i) {
    StampsOfPart& part = out[cells.part[i]];
    part.first_ns = std::min(part.first_ns, cells.start_ns[i]);
    if (part.steps.empty() || part.steps.back().second != cells.step[i])
      part.steps.emplace_back(cells.start_ns[i], cells.step[i]);
  }
  for (StampsOfPart& part : out) std::ranges::sort(part.steps);
  return out;
}

// Returns true where the source restarts clocks at every step; then a clock has one segment per step and no drift.
bool by_step(const Trace& trace) { return trace.steps_laid_end_to_end && trace.clock == ClockState::kPerRank; }

int64_t step_of(const StampsOfPart& part, const ClockSegment& segment) {
  const auto at = std::ranges::lower_bound(part.steps, std::pair(segment.from_ns, INT32_MIN));
  return at == part.steps.end() ? kNullInteger : at->second;
}

// Returns true when the rank's clock, or this segment of it, is not connected to the first rank's.
bool is_untied(const Trace& trace, const ClockSegment& s) { return s.reference_rank != trace.parts.front().rank; }

std::string method_of(const ClockSegment& s, bool untied, bool trusted) {
  if (untied && !trusted && !is_measured(s.evidence)) return "untied";
  return std::string(evidence_name(s.evidence));
}

int64_t whole(double ns) { return ns < 0 ? kNullInteger : std::llround(std::ceil(ns)); }
double ppb(double drift) { return drift < 0 ? kNaN : std::ceil(drift * 1e12) / 1e3; }
// Returns parts per million with at most three decimals, and never −0.
double ppm(double drift) { return std::round(drift * 1e9) / 1e3 + 0.0; }
double ppm_or_unknown(double drift) { return drift < 0 ? kNaN : ppm(drift); }

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

Table clock_table(const Trace& trace, const std::vector<ClockMap>& clocks, bool trusted) {
  Table table(declared_table("run/clocks"));
  const std::vector<StampsOfPart> stamps = stamps_of(trace);
  const bool steps = by_step(trace);
  for (size_t p = 0; p < trace.parts.size() && p < clocks.size(); ++p)
    for (const ClockSegment& s : clocks[p].segments) {
      const bool untied = is_untied(trace, s), nothing = untied && !is_measured(s.evidence) && !trusted;
      const bool drifts = !steps && !nothing;
      table.add_row({int64_t{trace.parts[p].rank}, trace.parts[p].machine_name, int64_t{s.reference_rank},
                     nothing ? kNullInteger : s.offset_ns,
                     s.offset_half_ns < 0 || nothing ? kNullInteger : s.offset_half_ns,
                     drifts ? std::round(s.drift * 1e12) / 1e3 + 0.0 : kNaN, drifts ? ppb(s.drift_half) : kNaN,
                     s.message_count, method_of(s, untied, trusted), s.from_ns == INT64_MIN ? kNullInteger : s.from_ns,
                     nothing ? kNullInteger : whole(s.offset_error_ns), drifts ? ppb(s.drift_error) : kNaN,
                     steps ? step_of(stamps[p], s) : kNullInteger});
    }
  return table;
}

Table clock_summary_table(const Trace& trace, const std::vector<ClockMap>& clocks, bool trusted) {
  const std::vector<StampsOfPart> stamps = stamps_of(trace);
  const bool steps = by_step(trace);
  bool hosts = false, sets = false;
  for (size_t p = 0; p < trace.parts.size() && p < clocks.size(); ++p) {
    hosts = hosts || !trace.parts[p].machine_name.empty();
    sets = sets || (!steps && clocks[p].segments.size() > 1);
  }
  TableSpec spec = declared_table("run/clocks/summary");
  for (const auto& [name, wanted] : {std::pair{"host", hosts}, std::pair{"step", steps}, std::pair{"from_ns", sets},
                                     std::pair{"drift_ppm", !steps}, std::pair{"drift_error_ppm", !steps}})
    if (!wanted) std::erase_if(spec.columns, [&](const ColumnSpec& column) { return column.name == name; });
  Table table(std::move(spec));
  for (size_t p = 0; p < trace.parts.size() && p < clocks.size(); ++p)
    for (const ClockSegment& s : clocks[p].segments) {
      const bool untied = is_untied(trace, s), nothing = untied && !is_measured(s.evidence) && !trusted;
      std::vector<Table::Value> row = {int64_t{trace.parts[p].rank}};
      if (hosts) row.emplace_back(trace.parts[p].machine_name);
      if (steps) row.emplace_back(step_of(stamps[p], s));
      int64_t since = kNullInteger;
      if (s.from_ns == INT64_MIN || __builtin_sub_overflow(s.from_ns, stamps[p].first_ns, &since)) since = kNullInteger;
      if (sets) row.emplace_back(since);
      row.emplace_back(int64_t{s.reference_rank});
      row.emplace_back(nothing ? kNullInteger : s.offset_ns);
      row.emplace_back(nothing ? kNullInteger : whole(s.offset_error_ns));
      row.emplace_back(s.offset_half_ns < 0 || nothing ? kNullInteger : s.offset_half_ns);
      if (!steps) {
        row.emplace_back(nothing ? kNaN : ppm(s.drift));
        row.emplace_back(nothing ? kNaN : ppm_or_unknown(s.drift_error));
      }
      row.emplace_back(s.message_count);
      row.emplace_back(method_of(s, untied, trusted));
      table.add_row(std::move(row));
    }
  return table;
}

}  // namespace stageline
