#include "profile/tb_work.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/number.h"
#include "base/parallel.h"

namespace stageline {

TbRankWork tb_work(const TbRun& run, const TbRank& rank) {
  TbRankWork out;
  out.rank = rank.rank.rank;
  out.steps = rank.steps;
  const std::vector<Interval>& kernels = rank.covered(TbRole::kKernel);
  const std::vector<Interval>& compute = kernels.empty() ? rank.covered(TbRole::kCpuExec) : kernels;
  const std::vector<Interval>& talk = rank.covered(TbRole::kCommunication);
  out.communicates = !talk.empty();
  out.exposed = without(talk, compute);
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

namespace {

// Divides the time of calls. When a call was matched with other ranks, its last transfer_ns are transfer and the rest
// is waiting. Of other calls nothing is known.
void split_waits(TbRankWork& rank) {
  std::vector<Interval> joined, transfer, all, messages, message_transfer, waits;
  for (const TbCollective& call : rank.calls) {
    const Interval at = {call.start_ns, call.start_ns + call.dur_ns};
    all.push_back(at);
    if (call.transfer_ns < 0) continue;
    joined.push_back(at);
    transfer.push_back({at.end - call.transfer_ns, at.end});
    if (!call.message) {
      waits.push_back({at.start, transfer.back().start});
      continue;
    }
    messages.push_back(at);
    message_transfer.push_back(transfer.back());
  }
  const CoveredTime any(union_of(std::move(all))), known(union_of(std::move(joined))),
      moving(union_of(std::move(transfer))), paired(union_of(std::move(messages))),
      paired_moving(union_of(std::move(message_transfer))),
      exposed(shared_of(rank.exposed, union_of(std::move(waits))));
  for (const TbStep& step : rank.steps) {
    const auto within = [&](const CoveredTime& time) { return time.within(step.start_ns, step.end_ns); };
    TbWait wait{.transfer_ns = within(moving)};
    wait.synchronizing_ns = within(known) - wait.transfer_ns;
    wait.unknown_ns = within(any) - within(known);
    wait.message_transfer_ns = within(paired_moving);
    wait.message_wait_ns = within(paired) - wait.message_transfer_ns;
    wait.exposed_wait_ns = within(exposed);
    rank.waits.push_back(wait);
  }
}

struct WaitFor {
  size_t rank, step;  // their indexes
  int64_t ns;
};

// The exposed waiting of a rank in collectives, and for whom. Where it waits in several at a time, it is in the first.
std::vector<WaitFor> exposed_waits(const TbRankWork& rank) {
  std::vector<const TbCollective*> calls;
  for (const TbCollective& call : rank.calls)
    if (!call.message && call.transfer_ns >= 0) calls.push_back(&call);
  std::ranges::stable_sort(calls, {}, &TbCollective::start_ns);
  const CoveredTime exposed(rank.exposed);
  std::vector<WaitFor> out;
  int64_t waited_until = INT64_MIN;
  for (const TbCollective* call : calls) {
    const int64_t begin = std::max(waited_until, call->start_ns);
    const int64_t end = call->start_ns + call->dur_ns - call->transfer_ns;
    if (end <= begin) continue;
    waited_until = end;
    const auto after = std::ranges::upper_bound(rank.steps, begin, {}, &TbStep::start_ns);
    if (after == rank.steps.begin() || begin >= std::prev(after)->end_ns) continue;
    out.push_back({call->last, static_cast<size_t>(after - rank.steps.begin() - 1), exposed.within(begin, end)});
  }
  return out;
}

void sum_step_waits(std::vector<TbRankWork>& ranks) {
  std::vector<std::vector<WaitFor>> waits(ranks.size());
  parallel_for(ranks.size(), [&](size_t k) { waits[k] = exposed_waits(ranks[k]); });
  for (size_t k = 0; k < ranks.size(); ++k) {
    for (const TbStep& step : ranks[k].steps) ranks[k].step_waits.push_back({.number = step.number});
    for (const TbCollective& call : ranks[k].calls) {
      if (call.message || call.transfer_ns < 0) continue;
      ++ranks[k].collectives;
      ranks[k].came_last += call.last == k ? 1 : 0;
    }
  }
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const WaitFor& wait : waits[k]) {
      ranks[k].step_waits[wait.step].own_ns += wait.ns;
      std::vector<TbStepWait>& last = ranks[wait.rank].step_waits;
      if (wait.step < last.size()) last[wait.step].others_ns += wait.ns;
    }
}

}  // namespace

TbJoin join_work(std::vector<TbRankWork>& ranks, bool one_clock) {
  std::vector<std::vector<TbCollective>> calls(ranks.size());
  for (size_t k = 0; k < ranks.size(); ++k) calls[k] = std::move(ranks[k].calls);
  const TbJoin join = join_collectives(calls, one_clock);
  for (size_t k = 0; k < ranks.size(); ++k) ranks[k].calls = std::move(calls[k]);
  parallel_for(ranks.size(), [&](size_t k) { split_waits(ranks[k]); });
  sum_step_waits(ranks);
  return join;
}

TbMeanWork TbRankWork::mean() const {
  TbMeanWork m;
  if (steps.empty()) return m;
  const auto mean = [&](const auto& of_steps, auto member) {
    const int64_t sum = sum_over<int64_t>(of_steps, [&](const auto& step) { return step.*member; });
    return std::llround(sum / static_cast<double>(steps.size()));
  };
  for (const TbStep& step : steps) m.step_ns += step.length_ns();
  m.step_ns = std::llround(m.step_ns / static_cast<double>(steps.size()));
  for (const auto part :
       {&TbOverlap::computation_ns, &TbOverlap::overlap_ns, &TbOverlap::communication_ns, &TbOverlap::other_ns})
    m.overlap.*part = mean(overlaps, part);
  for (const auto part : {&TbWait::transfer_ns, &TbWait::synchronizing_ns, &TbWait::unknown_ns,
                          &TbWait::message_transfer_ns, &TbWait::message_wait_ns, &TbWait::exposed_wait_ns})
    m.wait.*part = mean(waits, part);
  return m;
}

}  // namespace stageline
