#include "plan/lower_bound.h"

namespace stageline::plan {
namespace {

// The least latency of a message between ranks, for bounds.
int64_t min_latency(const PlanProblem& p) {
  int64_t least = p.times.latency;
  for (const auto* list : {&p.times.there, &p.times.back})
    for (const int64_t ns : *list) least = std::min(least, ns);
  return least;
}

}  // namespace

LowerBound::LowerBound(const PlanProblem& p) : p_(p), splits_(splits_backward(p.schedule)) {
  for (const RankOrder& order : p.schedule.ranks) {
    const auto stage_of = [&, r = static_cast<int32_t>(ranks_.size())](const Action& a) {
      return virtual_stage(p.schedule, r, a.chunk);
    };
    Rank& rank = ranks_.emplace_back();
    const auto alike = [&](const ScheduleCell& cell) -> Alike& {
      Action a = cell.actions().front(), b = cell.actions().back();
      a.micro_batch = b.micro_batch = 0;
      const ScheduleCell any = cell.overlapped() ? ScheduleCell(a, b) : ScheduleCell(a);
      const auto at = std::ranges::find(rank.cells, any, &Alike::cell);
      return at != rank.cells.end() ? *at : rank.cells.emplace_back(any);
    };
    if (!order.empty()) rank.first_stage = stage_of(order[0].actions()[0]);
    for (const ScheduleCell& cell : order) {
      for (const Action& a : cell.actions())
        if (is_backward(a.kind)) rank.last_backward = stage_of(a);
      if (rank.first_backward < 0) rank.first_backward = rank.last_backward;
      ++(rank.first_backward < 0 ? (++rank.warm, alike(cell).warm) : alike(cell).rest);
    }
    for (auto cell = order.rbegin(); cell != order.rend() && cell->actions()[0].kind == CellKind::kWeightGrad; ++cell)
      ++alike(*cell).trailing, ++rank.trailing;
  }
}

int64_t LowerBound::ns(const std::vector<LayerTime>& times) const {
  const int32_t stages = p_.stages();
  const int64_t hop = min_latency(p_);
  std::vector<int64_t> before(stages, 0), down(stages + 1, 0), after(stages, 0);
  // before: forwards of earlier stages; after: input gradients of earlier stages; down: from a stage to the end and
  // back. A message between two chunks of one rank costs nothing.
  const auto hops = [&](int32_t from, int32_t to) {
    if (p_.schedule.layout == ChunkLayout::kV && from / p_.ranks() != to / p_.ranks()) return int64_t{0};
    return p_.ranks() > 1 ? hop : 0;
  };
  const auto back_ns = [&](int32_t s) { return times[s].input + (splits_ ? 0 : times[s].weight); };
  for (int32_t s = 1; s < stages; ++s) {
    before[s] = before[s - 1] + times[s - 1].forward + hops(s - 1, s);
    after[s] = after[s - 1] + back_ns(s - 1) + hops(s - 1, s);
  }
  for (int32_t s = stages - 1; s >= 0; --s)
    down[s] = down[s + 1] + (s + 1 < stages ? times[s + 1].forward + back_ns(s + 1) + 2 * hops(s, s + 1) : 0);
  int64_t bound = 0;
  const bool whole = p_.schedule.layout != ChunkLayout::kBidirectional;
  for (int32_t r = 0; r < p_.ranks(); ++r) {
    const Rank& rank = ranks_[r];
    if (rank.cells.empty()) continue;
    int64_t warm = 0, rest = 0, trailing = 0;
    for (const Alike& alike : rank.cells) {
      const int64_t ns = cell_ns(p_, times, r, alike.cell);
      warm += alike.warm * ns, rest += alike.rest * ns, trailing += alike.trailing * ns;
    }
    int64_t wait = warm;
    // With one chunk per rank, the first gradient comes after its own forward has gone down and come back.
    if (p_.schedule.sizes.chunks == 1 && rank.first_backward >= 0)
      wait = std::max(warm, times[rank.first_stage].forward + down[rank.first_backward]);
    const int64_t start = whole ? before[rank.first_stage] : 0;
    const int64_t drain = whole && rank.last_backward >= 0 ? after[rank.last_backward] : 0;
    // Earlier stages go on after the rank's last backward, if the rank ends with it.
    bound = std::max({bound, start + wait + rest, start + wait + rest - trailing + drain});
  }
  return bound;
}

}  // namespace stageline::plan
