#include "pipeline/replay/replay.h"

#include <algorithm>
#include <string>

namespace stageline {
namespace {

// When F and I or B of each (micro-batch, virtual stage) end, or when what they send arrives; −1 while they have not
// run.
struct Done {
  std::vector<int64_t> forward, backward;
};

}  // namespace

Result<std::vector<std::vector<ReplayedCell>>> replay(const Schedule& schedule, const ReplayCosts& costs) {
  const auto ranks = static_cast<int32_t>(schedule.ranks.size());
  const int32_t chunks = schedule.sizes.chunks;
  const int32_t virtual_stages = virtual_stage_count(schedule);
  const bool two_ways = schedule.layout == ChunkLayout::kBidirectional;
  const auto slots = static_cast<size_t>(virtual_stages) * static_cast<size_t>(schedule.sizes.micro_batches);
  Done done{std::vector<int64_t>(slots, -1), std::vector<int64_t>(slots, -1)};
  const size_t messages = costs.arrival_ns ? slots : 0;
  Done arrived{std::vector<int64_t>(messages, -1), std::vector<int64_t>(messages, -1)};
  std::vector<int32_t> ranks_of(static_cast<size_t>(virtual_stages) * (two_ways ? 2 : 1));
  // The rank that holds a virtual stage; with two directions it also depends on the chunk.
  const auto rank_of = [&](int32_t stage, int32_t chunk) -> int32_t& {
    return ranks_of[static_cast<size_t>(stage) + (two_ways && chunk == 1 ? static_cast<size_t>(virtual_stages) : 0)];
  };
  for (int32_t r = 0; r < ranks; ++r)
    for (int32_t c = 0; c < chunks; ++c) rank_of(virtual_stage(schedule, r, c), c) = r;
  const auto slot = [&](int32_t mb, int32_t stage) {
    return static_cast<size_t>(mb) * static_cast<size_t>(virtual_stages) + static_cast<size_t>(stage);
  };

  // Returns the earliest start that the dependencies of one action allow; −1 while one of them has not run.
  const auto ready_at = [&](int32_t rank, const Action& action) -> int64_t {
    const int32_t stage = virtual_stage(schedule, rank, action.chunk);
    const auto after = [&](const std::vector<int64_t>& ends, const std::vector<int64_t>& arrivals,
                           int32_t other_stage) -> int64_t {
      const size_t at = slot(action.micro_batch, other_stage);
      if (ends[at] < 0 || rank_of(other_stage, action.chunk) == rank) return ends[at];
      return costs.arrival_ns ? arrivals[at] : ends[at] + costs.latency_ns;
    };
    switch (action.kind) {
      case CellKind::kForward: return stage == 0 ? 0 : after(done.forward, arrived.forward, stage - 1);
      case CellKind::kWeightGrad: return done.backward[slot(action.micro_batch, stage)];
      default:
        return stage == virtual_stages - 1 ? done.forward[slot(action.micro_batch, stage)]
                                           : after(done.backward, arrived.backward, stage + 1);
    }
  };

  std::vector<std::vector<ReplayedCell>> result(static_cast<size_t>(ranks));
  std::vector<int64_t> free_at(static_cast<size_t>(ranks), 0);
  size_t remaining = 0;
  for (const RankOrder& order : schedule.ranks) remaining += order.size();
  // The ranks that may be able to go on. When a cell ends, the ranks that its message goes to are woken.
  std::vector<int32_t> awake;
  std::vector<bool> is_awake(static_cast<size_t>(ranks), true);
  for (int32_t r = ranks - 1; r >= 0; --r) awake.push_back(r);
  const auto wake = [&](int32_t stage, int32_t chunk) {
    if (stage < 0 || stage >= virtual_stages) return;
    const int32_t r = rank_of(stage, chunk);
    if (!is_awake[r]) {
      is_awake[r] = true;
      awake.push_back(r);
    }
  };
  const auto send = [&](int32_t from, int32_t to_stage, const Action& action, int64_t end_ns,
                        std::vector<int64_t>& arrivals) {
    if (!costs.arrival_ns || to_stage < 0 || to_stage >= virtual_stages) return;
    const int32_t to = rank_of(to_stage, action.chunk);
    if (to != from)
      arrivals[slot(action.micro_batch, virtual_stage(schedule, from, action.chunk))] =
          costs.arrival_ns(from, to, action, end_ns);
  };
  while (!awake.empty()) {
    const int32_t rank = awake.back();
    awake.pop_back();
    const auto r = static_cast<size_t>(rank);
    is_awake[r] = false;
    result[r].reserve(schedule.ranks[r].size());
    while (result[r].size() < schedule.ranks[r].size()) {
      const ScheduleCell& cell = schedule.ranks[r][result[r].size()];
      int64_t start = free_at[r];
      bool ready = true;
      for (const Action& action : cell.actions()) {
        const int64_t at = ready_at(rank, action);
        ready &= at >= 0;
        start = std::max(start, at);
      }
      if (!ready) break;
      if (costs.delay_ns) start += costs.delay_ns(rank, cell);
      const int64_t end = start + costs.cell_ns(rank, cell);
      result[r].push_back({start, end});
      free_at[r] = end;
      --remaining;
      for (const Action& action : cell.actions()) {
        const int32_t stage = virtual_stage(schedule, rank, action.chunk);
        const size_t at = slot(action.micro_batch, stage);
        if (action.kind == CellKind::kForward) {
          done.forward[at] = end;
          send(rank, stage + 1, action, end, arrived.forward);
          wake(stage + 1, action.chunk);
        } else if (action.kind != CellKind::kWeightGrad) {
          done.backward[at] = end;
          send(rank, stage - 1, action, end, arrived.backward);
          wake(stage - 1, action.chunk);
        }
      }
    }
  }
  if (remaining > 0) {
    for (size_t r = 0; r < result.size(); ++r)
      if (result[r].size() < schedule.ranks[r].size())
        return Error{ErrorCode::kBadInput,
                     "the schedule deadlocks: rank " + std::to_string(r) + " waits for ever at position " +
                         std::to_string(result[r].size()) + ", " + cell_text(schedule.ranks[r][result[r].size()]),
                     {},
                     "choose other sizes; for vpp, micro-batches a multiple of the group and the group no smaller than "
                     "the stages"};
  }
  return result;
}

}  // namespace stageline
