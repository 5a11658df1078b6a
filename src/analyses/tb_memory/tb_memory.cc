// Memory by time, by event and by operator, as TensorBoard's profiler plugin shows it.
// Definitions: docs/analyses/tb-memory.md.
#include "analyses/analysis.h"
#include "analyses/tb_memory/problems.h"
#include "base/error_words.h"
#include "profile/memory_blocks.h"
#include "profile/step_series.h"

namespace stageline {
namespace {

int64_t time_or_null(int64_t time_ns) { return time_ns == MemoryEvent::kNullTime ? kNullInteger : time_ns; }

Table peaks_table(const std::vector<MemoryAnswer>& ranks) {
  Table table(declared_table("tb-memory/memory-peaks"));
  for (const MemoryAnswer& answer : ranks)
    for (const MemoryCurve& curve : answer.curves) {
      if (curve.points.empty()) continue;
      int64_t reserved = -1;
      for (const MemoryPoint& point : curve.points) reserved = std::max(reserved, point.reserved);
      const MemoryPoint& peak = curve.points[curve.peak];
      table.add_row({int64_t{answer.rank}, memory_device_name(curve.device), peak.allocated, peak.time_ns,
                     reserved < 0 ? kNullInteger : reserved, std::ssize(curve.points),
                     std::string(curve.recorded ? "recorded" : "summed")});
    }
  return table;
}

Table curve_table(const std::vector<MemoryAnswer>& ranks, size_t max_points) {
  Table table(declared_table("tb-memory/memory-curve"));
  for (const MemoryAnswer& answer : ranks)
    for (const MemoryCurve& curve : answer.curves)
      for (const MemoryPoint& point :
           thin_series(curve.points, max_points, [](const MemoryPoint& p) { return p.allocated; }))
        table.add_row({int64_t{answer.rank}, memory_device_name(curve.device), point.time_ns, point.allocated,
                       point.reserved < 0 ? kNullInteger : point.reserved});
  return table;
}

Table events_table(const std::vector<MemoryAnswer>& ranks) {
  Table table(declared_table("tb-memory/memory-events"));
  for (const MemoryAnswer& answer : ranks) {
    for (const MemoryEvent& e : answer.events) {
      const bool both = e.allocated_ns != MemoryEvent::kNullTime && e.freed_ns != MemoryEvent::kNullTime;
      table.add_row({int64_t{answer.rank}, memory_device_name(e.device), e.operator_name, e.bytes,
                     time_or_null(e.allocated_ns), time_or_null(e.freed_ns),
                     both ? e.freed_ns - e.allocated_ns : kNullInteger});
    }
  }
  return table;
}

Table operators_table(const TorchRun& run, const std::vector<MemoryAnswer>& ranks) {
  Table table(declared_table("tb-memory/memory-operators"));
  for (const MemoryAnswer& answer : ranks)
    for (const MemoryOperator& op : answer.operators)
      table.add_row({int64_t{answer.rank}, memory_device_name(op.device), std::string(run.trace->names.text(op.name)),
                     op.calls, op.increase, op.self_increase, op.allocations, op.self_allocations, op.allocated,
                     op.self_allocated});
  return table;
}

void note_flaws(const std::vector<MemoryAnswer>& ranks, Diagnostics& notes) {
  int64_t outside = 0, lost = 0, unplaced = 0, more = 0;
  for (const MemoryAnswer& answer : ranks) {
    outside += answer.outside;
    lost += answer.history.lost_frees;
    unplaced += answer.history.without_address;
    more += answer.history.more_devices;
  }
  notes.add(problem::memory_outside, {}, outside);
  notes.add(problem::memory_more_devices, {}, more);
  notes.add(problem::memory_lost_free, {}, lost);
  notes.add(problem::memory_no_address, {}, unplaced);
}

}  // namespace

Result<AnalysisResult> run_tb_memory(const AnalysisInput& input) {
  TRY(max, input.options.integer("points", 1000, 2, INT64_MAX));
  TRY(torch, make_torch_run(*input.trace, {false, true}));
  std::vector<MemoryAnswer> ranks(torch->parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = memory_answer(*torch, torch->parts[k]); });
  if (std::ranges::all_of(ranks, [](const MemoryAnswer& a) { return a.history.by_time.empty(); })) {
    if (input.for_report) return AnalysisResult{};  // nothing was asked: no flaw
    return worded_error(ErrorCode::kNotFound, "refused.not_recorded:memory", {}, {},
                        "torch.profiler writes them with profile_memory=True");
  }
  AnalysisResult result;
  result.add(peaks_table(ranks), operators_table(*torch, ranks));
  if (!input.for_report) result.tables.push_back(events_table(ranks));
  const size_t points = input.for_report ? kReportPoints : static_cast<size_t>(*max);
  result.tables.push_back(curve_table(ranks, points));
  note_flaws(ranks, result.notes);
  return result;
}

}  // namespace stageline
