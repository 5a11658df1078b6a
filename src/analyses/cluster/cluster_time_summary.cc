// Where the time of every rank went, step by step. Definitions: docs/analyses/cluster-time-summary.md.
#include "analyses/cluster/cluster.h"
#include "analyses/cluster/msprof.h"
#include "model/statistics.h"
#include "profile/cluster_times.h"

namespace stageline {
namespace {

Table cluster_step_table(const TorchRun& run, const std::vector<ClusterTimes>& ranks) {
  Table table(declared_table("cluster-time-summary/cluster-time-summary"));
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const auto& [step, t] : ranks[k])
      table.add_row({int64_t{run.ranks[run.parts[k]]}, step < 0 ? kNullInteger : int64_t{step}, t.step_ns, t.span_ns(),
                     t.compute_ns, t.exposed_ns, t.exposed_memory_ns, t.free_ns, share_of(t.free_ns, t.span_ns()),
                     t.communication_ns, t.overlap_ns, t.memory_ns, t.bubble_ns, t.span_ns() - t.bubble_ns,
                     t.host_start == INT64_MIN ? kNullInteger : std::max<int64_t>(0, t.work.start_ns - t.host_start),
                     t.waits_known() ? t.wait_ns : kNullInteger, t.waits_known() ? t.transfer_ns : kNullInteger});
  return table;
}

Table total_table(const TorchRun& run, const std::vector<ClusterTimes>& ranks) {
  Table table(declared_table("cluster-time-summary/cluster-time-ranks"));
  for (size_t k = 0; k < ranks.size(); ++k) {
    if (ranks[k].empty()) continue;
    const ClusterSum s = cluster_sum(ranks[k]);
    table.add_row({int64_t{run.ranks[run.parts[k]]}, s.steps, s.span_ns, s.compute_ns, s.exposed_message_ns,
                   s.exposed_collective_ns, s.exposed_memory_ns, s.free_ns, share_of(s.free_ns, s.span_ns),
                   s.waits_known ? s.wait_ns : kNullInteger});
  }
  return table;
}

// Returns the profiler's own sums, for ranks whose device work is in no file (Ascend: only step_trace_time.csv).
Table reported_table(const Trace& trace) {
  Table table(declared_table("cluster-time-summary/cluster-time-reported"));
  const auto known = [](int64_t ns) { return ns < 0 ? kNullInteger : ns; };
  std::vector<const Part*> parts;
  const std::vector<int32_t>& wanted = trace.slice_filter.ranks;
  for (const Part& part : trace.parts) {
    const bool works = std::ranges::any_of(
        part.lanes, [](const Lane& lane) { return lane.kind == LaneKind::kDeviceStream && lane.end > lane.begin; });
    const bool asked = wanted.empty() || std::ranges::binary_search(wanted, part.rank);
    if (!works && asked) parts.push_back(&part);
  }
  sort_stably(parts, {}, &Part::rank);
  for (const Part* part : parts)
    for (const StepSummary& s : part->step_summaries)
      table.add_row({int64_t{part->rank}, known(s.step), known(s.computing_ns),
                     known(s.communication_not_overlapped_ns), known(s.overlapped_ns), known(s.free_ns),
                     known(s.stage_ns), known(s.bubble_ns), known(s.preparing_ns)});
  return table;
}

}  // namespace

Result<AnalysisResult> run_cluster_time_summary(const AnalysisInput& input) {
  AnalysisResult result;
  note_level_none(input, result.notes);
  // In reports of other devices' profiles, their own sections show the same.
  if (input.for_report && input.trace->device_family != DeviceFamily::kNpu) return result;
  Table reported = reported_table(*input.trace);
  const bool any_slices = std::ranges::any_of(
      input.trace->parts, [](const Part& part) { return part.slices.size() > 0 && part.slices.has_facts(); });
  if (!any_slices && !input.msprof && reported.row_count() > 0) return result.with(std::move(reported));
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  std::vector<std::vector<CommunicationOp>> ops = all_communication_ops(*torch);
  if (input.msprof) return result.with(msprof_time_summary(*torch, ops));
  const Matched matched = match_collectives(ops);
  note_unmatched(matched, ops.size(), result.notes);
  std::vector<ClusterTimes> ranks(ops.size());
  parallel_for(ranks.size(),
               [&](size_t k) { ranks[k] = cluster_times(*torch, *torch_rank(*torch, torch->parts[k]), ops[k]); });
  result.add(cluster_step_table(*torch, ranks), total_table(*torch, ranks));
  if (reported.row_count() > 0) result.tables.push_back(std::move(reported));
  return result;
}

}  // namespace stageline
