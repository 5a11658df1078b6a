// Where the time of every rank went, step by step. Definitions: docs/analyses/cluster-time-summary.md.
#include <algorithm>

#include "analyses/analysis.h"
#include "analyses/cluster/cluster_notes.h"
#include "analyses/cluster/rival_time_summary.h"
#include "base/parallel.h"
#include "model/statistics.h"
#include "profile/cluster_times.h"

namespace stageline {
namespace {

std::vector<ColumnSpec> cluster_time_summary_columns() {
  return {
      {"rank", "rank", Type::kInteger, "Global rank"},
      {"step", "step", Type::kInteger, "Step of the launch; empty for work outside of steps"},
      {"step_ns", "step of the host", Type::kDuration,
       "Length of the step on the host; empty when the profile has none"},
      {"span_ns", "span", Type::kDuration,
       "From the first start to the last end of the step's device work; the next four columns sum to it"},
      {"compute_ns", "computing", Type::kDuration, "Union of computation"},
      {"exposed_communication_ns", "exposed communication", Type::kDuration, "Communication while nothing is computed"},
      {"exposed_memory_ns", "exposed copies", Type::kDuration,
       "Copies and memsets while there is neither computation nor communication"},
      {"free_ns", "free", Type::kDuration, "Time without any device work"},
      {"free_share", "free", Type::kShare, "Free time as a share of the span"},
      {"communication_ns", "communication", Type::kDuration, "Union of communication"},
      {"overlap_ns", "overlapped", Type::kDuration, "Communication while something is computed"},
      {"memory_ns", "copies", Type::kDuration, "Union of copies and memsets"},
      {"bubble_ns", "bubble", Type::kDuration,
       "Exposed sends, receives and batches of them: the time to wait for pipeline messages and to move them"},
      {"stage_ns", "stage", Type::kDuration, "Span without the bubble"},
      {"preparing_ns", "preparing", Type::kDuration,
       "From the start of the host's step to the first start on the device; 0 when the device starts before"},
      {"communication_wait_ns", "waiting for ranks", Type::kDuration,
       "Waiting in collectives, exposed or not: measured by their tasks, or else as the time beyond the shortest of "
       "all ranks of the group; empty when both are missing"},
      {"communication_transfer_ns", "transfer", Type::kDuration,
       "Transfer in the same collectives: measured by their tasks, or else the shortest of all ranks of the group"}};
}

Table exact_cluster_time_summary_table(const TorchRun& run, const std::vector<ClusterTimes>& ranks) {
  Table table("cluster-time-summary", "Time of every rank and step", cluster_time_summary_columns());
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const auto& [step, t] : ranks[k])
      table.add_row({int64_t{run.ranks[run.parts[k]]}, step < 0 ? kNullInteger : int64_t{step}, t.step_ns, t.span_ns(),
                     t.compute_ns, t.exposed_ns, t.exposed_memory_ns, t.free_ns, share_of(t.free_ns, t.span_ns()),
                     t.communication_ns, t.overlap_ns, t.memory_ns, t.bubble_ns, t.span_ns() - t.bubble_ns,
                     t.host_start == INT64_MIN ? kNullInteger : std::max<int64_t>(0, t.work.start_ns - t.host_start),
                     t.waits_known() ? t.wait_ns : kNullInteger, t.waits_known() ? t.transfer_ns : kNullInteger});
  return table;
}

std::vector<ColumnSpec> cluster_time_ranks_columns() {
  return {
      {"rank", "rank", Type::kInteger, "Global rank"},
      {"step_count", "steps", Type::kInteger, "Steps with device work"},
      {"span_ns", "span", Type::kDuration,
       "Sum over its steps of the time from the first start to the last end of device work; work outside of steps is "
       "in no column, unless the rank has no steps"},
      {"compute_ns", "computing", Type::kDuration, ""},
      {"exposed_message_ns", "bubble", Type::kDuration, "Exposed sends and receives"},
      {"exposed_collective_ns", "exposed collectives", Type::kDuration,
       "Exposed communication other than sends and receives"},
      {"exposed_memory_ns", "exposed copies", Type::kDuration, ""},
      {"free_ns", "free", Type::kDuration, ""},
      {"free_share", "free", Type::kShare, "Free time as a share of the span"},
      {"communication_wait_ns", "waiting for ranks", Type::kDuration,
       "Waiting in collectives; empty when it is not known"}};
}

Table total_table(const TorchRun& run, const std::vector<ClusterTimes>& ranks) {
  Table table("cluster-time-ranks", "Time of every rank, all steps", cluster_time_ranks_columns());
  for (size_t k = 0; k < ranks.size(); ++k) {
    if (ranks[k].empty()) continue;
    const ClusterSum s = cluster_sum(ranks[k]);
    table.add_row({int64_t{run.ranks[run.parts[k]]}, s.steps, s.span_ns, s.compute_ns, s.exposed_message_ns,
                   s.exposed_collective_ns, s.exposed_memory_ns, s.free_ns, share_of(s.free_ns, s.span_ns),
                   s.waits_known ? s.wait_ns : kNullInteger});
  }
  return table;
}

std::vector<ColumnSpec> cluster_time_reported_columns() {
  return {
      {"rank", "rank", Type::kInteger, "Global rank"},
      {"step", "step", Type::kInteger, "Empty where the profile has no steps"},
      {"compute_ns", "computing", Type::kDuration,
       "Computation according to the profiler, as are all columns that follow"},
      {"exposed_communication_ns", "exposed communication", Type::kDuration, "Communication while nothing is computed"},
      {"overlap_ns", "overlapped", Type::kDuration, "Communication while something is computed"},
      {"free_ns", "free", Type::kDuration,
       "Time without computation or communication, counted from the first of either"},
      {"stage_ns", "stage", Type::kDuration, "The step without its bubble"},
      {"bubble_ns", "receives", Type::kDuration,
       "Bubble as the profiler defines it: only single receives, so it is 0 with batched messages"},
      {"preparing_ns", "preparing", Type::kDuration, ""}};
}

// Returns the profiler's own sums, for ranks whose device work is in no file (Ascend: only step_trace_time.csv).
Table reported_table(const Trace& trace) {
  Table table("cluster-time-told", "Time of every step as the profiler summed it, of ranks without device work",
              cluster_time_reported_columns());
  const auto known = [](int64_t ns) { return ns < 0 ? kNullInteger : ns; };
  std::vector<const Part*> parts;
  const std::vector<int32_t>& wanted = trace.slice_filter.ranks;
  for (const Part& part : trace.parts) {
    const bool works = std::any_of(part.lanes.begin(), part.lanes.end(), [](const Lane& lane) {
      return lane.kind == LaneKind::kDeviceStream && lane.end > lane.begin;
    });
    const bool asked = wanted.empty() || std::binary_search(wanted.begin(), wanted.end(), part.rank);
    if (!works && asked) parts.push_back(&part);
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part* a, const Part* b) { return a->rank < b->rank; });
  for (const Part* part : parts)
    for (const StepSummary& s : part->step_summaries)
      table.add_row({int64_t{part->rank}, known(s.step), known(s.computing_ns),
                     known(s.communication_not_overlapped_ns), known(s.overlapped_ns), known(s.free_ns),
                     known(s.stage_ns), known(s.bubble_ns), known(s.preparing_ns)});
  return table;
}

Result<AnalysisResult> run_cluster_time_summary(const AnalysisInput& input) {
  AnalysisResult result;
  note_level_none(input, result.notes);
  // In reports of other devices' profiles, their own sections show the same.
  if (input.for_report && input.trace->device_family != DeviceFamily::kNpu) return result;
  Table reported = reported_table(*input.trace);
  const bool any_slices = std::any_of(input.trace->parts.begin(), input.trace->parts.end(), [](const Part& part) {
    return part.slices.size() > 0 && part.slices.has_facts();
  });
  if (!any_slices && !input.msprof && reported.row_count() > 0) {
    result.tables.push_back(std::move(reported));
    return result;
  }
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  std::vector<std::vector<CommunicationOp>> ops = all_communication_ops(*torch);
  if (input.msprof) {
    result.tables.push_back(rival_time_summary(*torch, ops));
    return result;
  }
  const Matched matched = match_collectives(ops);
  note_unmatched(matched, ops.size(), result.notes);
  std::vector<ClusterTimes> ranks(ops.size());
  parallel_for(ranks.size(),
               [&](size_t k) { ranks[k] = cluster_times(*torch, *torch_rank(*torch, torch->parts[k]), ops[k]); });
  result.tables.push_back(exact_cluster_time_summary_table(*torch, ranks));
  result.tables.push_back(total_table(*torch, ranks));
  if (reported.row_count() > 0) result.tables.push_back(std::move(reported));
  return result;
}

}  // namespace

extern const Analysis cluster_time_summary_analysis = {
    .name = "cluster-time-summary",
    .summary = "computing, exposed communication, bubble, copies and free time of every rank and step",
    .tables = {{"cluster-time-summary", "one row per rank and step", cluster_time_summary_columns},
               {"cluster-time-ranks", "one row per rank (not with --compat msprof)", cluster_time_ranks_columns},
               {"cluster-time-told", "one row per rank and step that only the profiler's own sums tell of",
                cluster_time_reported_columns}},
    .run = run_cluster_time_summary,
    .needs = AnalysisNeeds::kTorch,
    .compat = "msprof",
    .takes_summaries = true};

}  // namespace stageline
