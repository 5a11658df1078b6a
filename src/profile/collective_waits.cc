#include "profile/collective_waits.h"

#include <algorithm>

namespace stageline {
namespace {

// [begin, end) holds one collective, once for each rank.
void add_collective(const TorchRun& run, CommunicationOp* const* begin, CommunicationOp* const* end,
                    CollectiveSums& sums) {
  const auto shorter = [](const CommunicationOp* a, const CommunicationOp* b) { return a->dur_ns < b->dur_ns; };
  const CommunicationOp* last = *std::min_element(begin, end, shorter);
  KindWaits& kind = sums.kinds[{last->group, last->group_ranks, last->kind}];
  int64_t wait = 0, first_end = INT64_MAX, last_end = INT64_MIN;
  for (auto at = begin; at != end; ++at) {
    const CommunicationOp& op = **at;
    RankWaits& rank = sums.ranks[op.rank_index];
    ++rank.collectives;
    rank.wait_ns += op.wait_ns();
    rank.transfer_ns += op.transfer_ns;
    wait += op.wait_ns();
    kind.longest_ns = std::max(kind.longest_ns, op.wait_ns());
    first_end = std::min(first_end, op.end_ns());
    last_end = std::max(last_end, op.end_ns());
  }
  ++kind.count;
  kind.ranks = std::max<int64_t>(kind.ranks, end - begin);
  kind.wait_ns += wait;
  kind.end_spread_ns.push_back(last_end - first_end);
  if (wait == 0) return;
  // On one clock the starts say who came last. Where that is not the shortest call, ranks do not leave together (gloo),
  // and no rank is known to have kept the others.
  if (run.trace->clock == ClockState::kShared &&
      std::any_of(begin, end, [&](const CommunicationOp* op) { return op->start_ns > last->start_ns; }))
    return;
  ++sums.ranks[last->rank_index].last;
  sums.ranks[last->rank_index].caused_ns += wait;
  kind.caused_ns[run.trace->parts[run.parts[last->rank_index]].rank] += wait;
}

}  // namespace

CollectiveSums collective_sums(const TorchRun& run, const Matched& matched) {
  CollectiveSums sums;
  sums.ranks.resize(run.parts.size());
  for (size_t c = 0; c < matched.count(); ++c)
    add_collective(run, matched.members.data() + matched.begin[c], matched.members.data() + matched.begin[c + 1], sums);
  return sums;
}

}  // namespace stageline
