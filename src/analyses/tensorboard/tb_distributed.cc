// Computation, communication and their overlap; waiting and transfer; and statistics of collectives, for every rank.
// Definitions: docs/analyses/tb-distributed.md.
#include <algorithm>
#include <cmath>

#include "analyses/tensorboard/problems.h"
#include "analyses/tensorboard/tb_distributed_tables.h"
#include "base/parallel.h"

namespace stageline {
namespace {

TbRankWork work_of(const TbRun& run, size_t part) {
  const TbRank rank = tb_rank(run, part);
  TbRankWork out;
  out.rank = rank.rank.rank;
  out.steps = rank.steps;
  const std::vector<Interval>& kernels = rank.covered(TbRole::kKernel);
  const std::vector<Interval>& compute = kernels.empty() ? rank.covered(TbRole::kCpuExec) : kernels;
  const std::vector<Interval>& talk = rank.covered(TbRole::kCommunication);
  out.communicates = !talk.empty();
  const CoveredTime computing(compute), talking(talk), both(shared_of(compute, talk));
  for (const TbStep& step : rank.steps) {
    const auto within = [&](const CoveredTime& time) { return time.within(step.start_ns, step.end_ns); };
    const int64_t overlap = within(both);
    TbOverlap o = {within(computing) - overlap, overlap, within(talking) - overlap, 0};
    o.other_ns = step.length_ns() - o.computation_ns - o.overlap_ns - o.communication_ns;
    out.overlaps.push_back(o);
  }
  out.calls = tb_collectives(run, rank);
  return out;
}

// Divides the time of calls. When a call was matched with other ranks, its last transfer_ns are transfer and the rest
// is waiting. Of other calls nothing is known.
void split_waits(TbRankWork& rank) {
  std::vector<Interval> joined, transfer, all, messages, message_transfer;
  for (const TbCollective& call : rank.calls) {
    const Interval at = {call.start_ns, call.start_ns + call.dur_ns};
    all.push_back(at);
    if (call.transfer_ns < 0) continue;
    joined.push_back(at);
    transfer.push_back({at.end - call.transfer_ns, at.end});
    if (!call.message) continue;
    messages.push_back(at);
    message_transfer.push_back(transfer.back());
  }
  const CoveredTime any(union_of(std::move(all))), known(union_of(std::move(joined))),
      moving(union_of(std::move(transfer))), paired(union_of(std::move(messages))),
      paired_moving(union_of(std::move(message_transfer)));
  for (const TbStep& step : rank.steps) {
    const auto within = [&](const CoveredTime& time) { return time.within(step.start_ns, step.end_ns); };
    TbWait wait;
    wait.transfer_ns = within(moving);
    wait.synchronizing_ns = within(known) - wait.transfer_ns;
    wait.unknown_ns = within(any) - within(known);
    wait.message_transfer_ns = within(paired_moving);
    wait.message_wait_ns = within(paired) - wait.message_transfer_ns;
    rank.waits.push_back(wait);
  }
}

Result<AnalysisResult> run_tb_distributed(const AnalysisInput& input) {
  Result<TbRun> made = make_tb_run(input);
  if (!made) return std::move(made).error();
  const TbRun& tb = *made;
  std::vector<TbRankWork> ranks(tb.torch.parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = work_of(tb, tb.torch.parts[k]); });
  AnalysisResult result;
  std::vector<std::vector<TbCollective>> calls(ranks.size());
  for (size_t k = 0; k < ranks.size(); ++k) calls[k] = std::move(ranks[k].calls);
  const TbJoin join = join_collectives(calls);
  for (size_t k = 0; k < ranks.size(); ++k) ranks[k].calls = std::move(calls[k]);
  parallel_for(ranks.size(), [&](size_t k) { split_waits(ranks[k]); });
  if (input.for_report &&
      std::all_of(ranks.begin(), ranks.end(), [](const TbRankWork& rank) { return rank.calls.empty(); }))
    return result;  // nothing was communicated, which is not a flaw
  result.tables = distributed_tables(tb, ranks, input.for_report);
  if (join.alone > 0 && ranks.size() > 1) result.notes.add(problem::tb_collectives_alone, {}, join.alone);
  if (join.unequal > 0) result.notes.add(problem::tb_collectives_unequal, {}, join.unequal);
  return result;
}

}  // namespace

extern const Analysis tb_distributed_analysis;
const Analysis tb_distributed_analysis = {
    .name = "tb-distributed",
    .summary = "computation, communication and overlap of every rank; waiting and transfer; statistics of collectives",
    .tables = {{"overlap", "one row per rank: the mean step", [] { return tb_overlap_columns(false); }},
               {"waits", "one row per rank: waiting and transfer of the mean step",
                [] { return tb_wait_columns(false); }},
               {"collectives", "one row per rank and collective", tb_collectives_columns},
               {"collectives-by-size", "one row per collective and size of message, all ranks", tb_sizes_columns},
               {"overlap-by-step", "one row per rank and step", [] { return tb_overlap_columns(true); }},
               {"waits-by-step", "one row per rank and step", [] { return tb_wait_columns(true); }}},
    .run = run_tb_distributed,
    .needs = AnalysisNeeds::kTorch};

}  // namespace stageline
