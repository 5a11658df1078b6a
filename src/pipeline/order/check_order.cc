#include "pipeline/order/check_order.h"

namespace stageline {
namespace {

enum State : uint8_t { kNothing, kForwardDone, kInputDone, kAllDone };

// Returns the state that an action's micro-batch and chunk must have before it, and the one it has after.
State needed(CellKind kind) {
  return kind == CellKind::kForward ? kNothing : kind == CellKind::kWeightGrad ? kInputDone : kForwardDone;
}
State left(CellKind kind) {
  return kind == CellKind::kForward ? kForwardDone : kind == CellKind::kInputGrad ? kInputDone : kAllDone;
}

std::string name(CellKind kind, int64_t micro_batch, int64_t chunk) {
  return std::string(kind_code(kind)) + std::to_string(micro_batch) + ".c" + std::to_string(chunk);
}

}  // namespace

Status check_order(const Schedule& schedule) {
  const auto bad = [](size_t rank, const std::string& what) -> Status {
    return make_error(ErrorCode::kBadInput, "rank " + std::to_string(rank) + " " + what);
  };
  const int32_t m = schedule.sizes.micro_batches, v = schedule.sizes.chunks;
  const bool two_ways = schedule.layout == ChunkLayout::kBidirectional;
  // A few lines of text may name huge numbers, so nothing is allocated before the counts agree.
  const uint64_t expected = m * static_cast<uint64_t>(two_ways ? 1 : v);
  for (size_t r = 0; r < schedule.ranks.size(); ++r) {
    uint64_t forwards = 0;
    for (const ScheduleCell& cell : schedule.ranks[r])
      for (const Action& a : cell.actions()) forwards += a.kind == CellKind::kForward ? 1 : 0;
    if (forwards != expected)
      return bad(r, "has " + std::to_string(forwards) + " forwards, not one of each micro-batch and chunk (" +
                        std::to_string(expected) + ")");
  }
  std::vector<int8_t> way(two_ways ? static_cast<size_t>(m) : 0, -1);
  std::vector<State> state;
  for (size_t r = 0; r < schedule.ranks.size(); ++r) {
    state.assign(m * static_cast<size_t>(v), kNothing);
    for (size_t i = 0; i < schedule.ranks[r].size(); ++i)
      for (const Action& a : schedule.ranks[r][i].actions()) {
        if (a.micro_batch < 0 || a.micro_batch >= m || a.chunk < 0 || a.chunk >= v || a.kind > CellKind::kWeightGrad)
          return bad(r, "has at position " + std::to_string(i) +
                            " what is no cell of this schedule: " + name(a.kind, a.micro_batch, a.chunk));
        State& now = state[a.micro_batch * static_cast<size_t>(v) + a.chunk];
        if (now != needed(a.kind))
          return bad(r, "has " + name(a.kind, a.micro_batch, a.chunk) + " at position " + std::to_string(i) +
                            (now >= left(a.kind) ? ", which it had before" : ", before what it needs"));
        now = left(a.kind);
        if (!two_ways) continue;
        int8_t& own = way[a.micro_batch];
        if (own >= 0 && own != a.chunk)
          return bad(r, "runs micro-batch " + std::to_string(a.micro_batch) + " in both directions");
        own = static_cast<int8_t>(a.chunk);
      }
    for (size_t at = 0; at < state.size(); ++at)
      if (state[at] != kAllDone && !(two_ways && state[at] == kNothing)) {
        const size_t chunks = v;
        return bad(r, "has no whole backward of " + name(CellKind::kForward, at / chunks, at % chunks));
      }
  }
  return {};
}

}  // namespace stageline
