// Where the time of every rank went, step by step. Definitions: docs/analyses/cluster-time-summary.md.
//
//   host step   ├─────────────────────────────────────────┤
//   device          ├ compute ┤├── exposed ──┤ free ├ compute ┤
//               ├──┤ preparing  ├─────────── span ────────────┤
//
// span = computing + exposed communication + exposed copies + free.
#include <algorithm>
#include <map>

#include "analyses/analysis.h"
#include "analyses/cluster/communication_ops.h"
#include "analyses/cluster/durations.h"
#include "analyses/cluster/op_times.h"
#include "analyses/cluster/rival_time_summary.h"
#include "base/number.h"
#include "base/parallel.h"
#include "model/intervals.h"
#include "model/statistics.h"

namespace stageline {
namespace {

using Type = ColumnType;

struct StepTimes {
  std::vector<Interval> compute, communication, messages, memory;  // raw intervals first, then their unions
  int64_t first = INT64_MAX, last = INT64_MIN;
  int64_t step_ns = kNullInteger, host_start = INT64_MIN;

  int64_t compute_ns = 0, communication_ns = 0, overlap_ns = 0, exposed_ns = 0, memory_ns = 0, exposed_memory_ns = 0;
  int64_t bubble_ns = 0, free_ns = 0;
  int64_t wait_ns = 0, transfer_ns = 0;  // of the collectives for which they are known
  int64_t collectives = 0, known = 0;
  bool waits_known() const { return known > 0 || collectives == 0; }
  int64_t span_ns() const { return last - first; }
};

void finish(StepTimes& t) {
  std::vector<Interval> all = t.compute;
  t.compute = union_of(std::move(t.compute));
  for (const auto* list : {&t.communication, &t.memory}) all.insert(all.end(), list->begin(), list->end());
  all = union_of(std::move(all));
  t.communication = union_of(std::move(t.communication));
  t.memory = union_of(std::move(t.memory));
  t.messages = union_of(std::move(t.messages));
  t.compute_ns = length_of(t.compute);
  t.communication_ns = length_of(t.communication);
  t.overlap_ns = shared_length(t.communication, t.compute);
  t.exposed_ns = t.communication_ns - t.overlap_ns;
  t.memory_ns = length_of(t.memory);
  t.exposed_memory_ns = length_of(without(without(t.memory, t.compute), t.communication));
  t.bubble_ns = length_of(without(t.messages, t.compute));
  t.free_ns = t.span_ns() - length_of(all);
  for (auto* list : {&t.compute, &t.communication, &t.memory, &t.messages}) *list = {};
}

using RankTimes = std::map<int32_t, StepTimes>;  // for each step; −1: outside of steps

RankTimes times_of(const TorchRun& run, const TorchRank& rank, const std::vector<CommunicationOp>& ops) {
  RankTimes steps;
  for (const TorchRow& row : rank.rows) {
    if (!row.on_device) continue;
    StepTimes& t = steps[row.iteration];
    t.first = std::min(t.first, row.start_ns);
    t.last = std::max(t.last, row.end_ns());
    const Interval i{row.start_ns, row.end_ns()};
    if (row.kernel == KernelClass::kComputation) {
      t.compute.push_back(i);
    } else if (row.kernel == KernelClass::kCommunication) {
      t.communication.push_back(i);
    } else {
      t.memory.push_back(i);
    }
  }
  for (const CommunicationOp& op : ops) {
    StepTimes& t = steps[op.step];
    if (op.messages) t.messages.push_back({op.start_ns, op.end_ns()});
  }
  for (const OpTime& time : op_times(run, ops, *rank.part, false)) {
    if (time.op.messages) continue;
    StepTimes& t = steps[time.op.step];
    ++t.collectives;
    t.known += time.basis != Basis::kNone ? 1 : 0;
    t.wait_ns = sum_or_limit(t.wait_ns, time.wait_ns);
    t.transfer_ns = sum_or_limit(t.transfer_ns, time.transit_ns);
  }
  for (const ProfilerStep& step : rank.part->steps) {
    const auto it = steps.find(static_cast<int32_t>(std::clamp<int64_t>(step.number, INT32_MIN, INT32_MAX)));
    if (it == steps.end()) continue;
    it->second.step_ns = step.end_ns - step.start_ns;
    it->second.host_start = step.start_ns - run.zero_ns;
  }
  for (auto& [number, t] : steps) finish(t);
  return steps;
}

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

Table exact_cluster_time_summary_table(const TorchRun& run, const std::vector<RankTimes>& ranks) {
  Table table("cluster-time-summary", "Time of every rank and step", cluster_time_summary_columns());
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const auto& [step, t] : ranks[k])
      table.add_row({int64_t{run.ranks[run.parts[k]]}, step < 0 ? kNullInteger : int64_t{step}, t.step_ns, t.span_ns(),
                     t.compute_ns, t.exposed_ns, t.exposed_memory_ns, t.free_ns,
                     share_of(static_cast<double>(t.free_ns), static_cast<double>(t.span_ns())), t.communication_ns,
                     t.overlap_ns, t.memory_ns, t.bubble_ns, t.span_ns() - t.bubble_ns,
                     t.host_start == INT64_MIN ? kNullInteger : std::max<int64_t>(0, t.first - t.host_start),
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

Table total_table(const TorchRun& run, const std::vector<RankTimes>& ranks) {
  Table table("cluster-time-ranks", "Time of every rank, all steps", cluster_time_ranks_columns());
  for (size_t k = 0; k < ranks.size(); ++k) {
    bool waits_known = true;
    int64_t steps = 0, span = 0, compute = 0, messages = 0, collectives = 0, memory = 0, free = 0, wait = 0;
    const bool has_steps = !ranks[k].empty() && ranks[k].rbegin()->first >= 0;
    for (const auto& [step, t] : ranks[k]) {
      // Work outside of steps may start before the first and end after the last one, so its span holds theirs.
      if (step < 0 && has_steps) continue;
      steps += step >= 0 ? 1 : 0;
      span += t.span_ns();
      compute += t.compute_ns;
      const int64_t bubble = std::min(t.bubble_ns, t.exposed_ns);
      messages += bubble;
      collectives += t.exposed_ns - bubble;
      memory += t.exposed_memory_ns;
      free += t.free_ns;
      wait = sum_or_limit(wait, t.wait_ns);
      waits_known &= t.waits_known();
    }
    if (ranks[k].empty()) continue;
    table.add_row({int64_t{run.ranks[run.parts[k]]}, steps, span, compute, messages, collectives, memory, free,
                   share_of(static_cast<double>(free), static_cast<double>(span)), waits_known ? wait : kNullInteger});
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
  Result<TorchRun> torch = make_torch_run(*input.trace, {.include_last_step = true});
  if (!torch) return std::move(torch).error();
  std::vector<std::vector<CommunicationOp>> ops = all_communication_ops(*torch);
  if (input.msprof) {
    result.tables.push_back(rival_time_summary(*torch, ops));
    return result;
  }
  const Matched matched = match_collectives(ops);
  note_unmatched(matched, ops.size(), result.notes);
  std::vector<RankTimes> ranks(ops.size());
  parallel_for(ranks.size(),
               [&](size_t k) { ranks[k] = times_of(*torch, *torch_rank(*torch, torch->parts[k]), ops[k]); });
  result.tables.push_back(exact_cluster_time_summary_table(*torch, ranks));
  result.tables.push_back(total_table(*torch, ranks));
  if (reported.row_count() > 0) result.tables.push_back(std::move(reported));
  return result;
}

}  // namespace

extern const Analysis cluster_time_summary_analysis;
const Analysis cluster_time_summary_analysis = {
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
