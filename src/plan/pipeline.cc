#include "plan/pipeline.h"

#include <algorithm>
#include <cmath>

#include "pipeline/replay/replay.h"

namespace stageline::plan {
namespace {

int64_t cell_ns(const PlanProblem& p, const std::vector<StageTime>& times, int32_t rank, const ScheduleCell& cell) {
  const auto time_of = [&](const Action& a) -> const StageTime& {
    return times[virtual_stage(p.schedule, rank, a.chunk)];
  };
  const auto one = [&](const Action& a) {
    const StageTime& t = time_of(a);
    switch (a.kind) {
      case CellKind::kForward: return t.forward;
      case CellKind::kInputGrad: return t.input;
      case CellKind::kWeightGrad: return t.weight;
      default: return t.input + t.weight;
    }
  };
  const auto actions = cell.actions();
  if (!cell.overlapped()) return one(actions[0]);
  const int64_t sum = one(actions[0]) + one(actions[1]);
  if (p.times.overlap > 0) return std::llround(p.times.overlap * static_cast<double>(sum));
  const int64_t comm = time_of(actions[0]).forward_comm + time_of(actions[1]).input_comm;
  return std::max(sum - comm, comm) + std::min(sum - comm, comm) / 10;
}

ReplayCosts costs_of(const PlanProblem& p, const std::vector<StageTime>& times) {
  ReplayCosts costs;
  costs.latency_ns = p.times.latency;
  costs.cell_ns = [&p, &times](int32_t rank, const ScheduleCell& cell) { return cell_ns(p, times, rank, cell); };
  if (!p.times.there.empty())
    costs.arrival_ns = [&p](int32_t from, int32_t to, const Action&, int64_t sent) {
      // A message that skips ranks, as between chunks, is none that a run recorded.
      if (std::abs(from - to) != 1) return sent + p.times.latency;
      return sent + (from < to ? p.times.there[from] : p.times.back[to]);
    };
  return costs;
}

// The least latency of a message between ranks, for bounds.
int64_t least_latency(const PlanProblem& p) {
  int64_t least = p.times.latency;
  for (const auto* list : {&p.times.there, &p.times.back})
    for (const int64_t ns : *list) least = std::min(least, ns);
  return p.times.there.empty() ? p.times.latency : least;
}

}  // namespace

bool splits_backward(const Schedule& schedule) {
  for (const RankOrder& order : schedule.ranks)
    for (const ScheduleCell& cell : order)
      if (cell.actions()[0].kind == CellKind::kWeightGrad) return true;
  return false;
}

LayerSums::LayerSums(const PlanProblem& p) : forward(1, 0), input(1, 0), weight(1, 0) {
  for (const uint8_t kind : p.kind_of) {
    const LayerTime& t = p.times.kinds[kind];
    forward.push_back(forward.back() + t.forward);
    input.push_back(input.back() + t.input);
    weight.push_back(weight.back() + t.weight);
  }
}

int64_t LayerSums::stage_forward(const PlanProblem& p, int32_t stage, int32_t lo, int32_t hi) const {
  return forward[hi] - forward[lo] + (stage == 0 ? p.times.embedding.forward : 0) +
         (stage + 1 == p.stages() ? p.times.head.forward : 0);
}
int64_t LayerSums::stage_input(const PlanProblem& p, int32_t stage, int32_t lo, int32_t hi) const {
  return input[hi] - input[lo] + (stage == 0 ? p.times.embedding.input : 0) +
         (stage + 1 == p.stages() ? p.times.head.input : 0);
}
int64_t LayerSums::stage_weight(const PlanProblem& p, int32_t stage, int32_t lo, int32_t hi) const {
  return weight[hi] - weight[lo] + (stage == 0 ? p.times.embedding.weight : 0) +
         (stage + 1 == p.stages() ? p.times.head.weight : 0);
}

std::vector<int32_t> Plan::layers() const {
  std::vector<int32_t> out;
  for (size_t s = 0; s + 1 < bounds.size(); ++s) out.push_back(bounds[s + 1] - bounds[s]);
  return out;
}

ChunkBytes chunk_bytes(const PlanProblem& p, int32_t stage, int32_t lo, int32_t hi, const Recompute& recompute) {
  ChunkBytes out;
  for (int32_t i = lo; i < hi; ++i) {
    const LayerBytes& b = p.bytes.kinds[p.kind_of[i]];
    double act = b.act;
    if (i - lo < recompute.full) {
      act = b.input;
    } else if (recompute.modules) {
      for (size_t k = 0; k < kModules; ++k)
        if (recompute.modules >> k & 1) act -= b.saved[k];
    }
    out.act += act;
    out.kept_by_w += act * b.w_keeps;
    out.recompute = std::max(out.recompute, b.act - act);
    out.backward = std::max(out.backward, b.backward);
    out.states += b.states;
    out.kinds |= uint32_t{1} << p.kind_of[i];
  }
  if (p.memory.keeps_sent && stage + 1 < p.stages()) out.act += p.bytes.sent, out.kept_by_w += p.bytes.sent;
  if (stage == 0) {
    out.states += p.bytes.embedding;
    out.act += p.bytes.embedding_act, out.kept_by_w += p.bytes.embedding_act;
  }
  if (stage + 1 == p.stages()) {
    out.states += p.bytes.head;
    out.act += p.bytes.head_act, out.kept_by_w += p.bytes.head_act;
    out.head = p.bytes.head_transient;
  }
  return out;
}

RankPeak peak_of(const PlanProblem& p, int32_t rank, const Plan& plan) {
  std::vector<ChunkBytes> chunks;
  for (int32_t c = 0; c < p.schedule.sizes.chunks; ++c) {
    const int32_t s = virtual_stage(p.schedule, rank, c);
    chunks.push_back(chunk_bytes(p, s, plan.bounds[s], plan.bounds[s + 1], plan.recompute[s]));
  }
  RankPeak peak = rank_peak(p.bytes, p.held[rank], chunks);
  if (!p.other_bytes.empty()) peak.other += static_cast<double>(p.other_bytes[rank]);
  return peak;
}

bool fits(const PlanProblem& p, int32_t, const RankPeak& peak) {
  return p.limit <= 0 || needed(peak, p.bar, p.memory) <= p.limit;
}

int64_t again_ns(const PlanProblem& p, const LayerSums& sums, int32_t lo, const Recompute& recompute, int32_t hi) {
  int64_t ns = sums.forward[std::min(hi, lo + recompute.full)] - sums.forward[lo];
  if (recompute.modules)
    for (int32_t i = lo; i < hi; ++i)
      for (size_t k = 0; k < kModules; ++k)
        if (recompute.modules >> k & 1) ns += p.times.kinds[p.kind_of[i]].again[k];
  return ns;
}

bool recompute_rank(const PlanProblem& p, const LayerSums& sums, int32_t rank, Plan& plan) {
  std::vector<int32_t> stages;
  for (int32_t c = 0; c < p.schedule.sizes.chunks; ++c) stages.push_back(virtual_stage(p.schedule, rank, c));
  const auto size_of = [&](int32_t s) { return plan.bounds[s + 1] - plan.bounds[s]; };
  const auto set = [&](Modules modules, int32_t full) {
    for (const int32_t s : stages) plan.recompute[s] = {modules, std::min(full, size_of(s))};
  };
  const auto is_enough = [&] { return fits(p, rank, peak_of(p, rank, plan)); };
  const auto cost = [&] {
    int64_t ns = 0;
    for (const int32_t s : stages) ns += again_ns(p, sums, plan.bounds[s], plan.recompute[s], plan.bounds[s + 1]);
    return ns;
  };
  set(0, 0);
  if (is_enough()) return true;
  int64_t best_ns = INT64_MAX;
  std::vector<Recompute> best;
  const auto keep = [&] {
    if (const int64_t ns = cost(); ns < best_ns) {
      best_ns = ns;
      best.clear();
      for (const int32_t s : stages) best.push_back(plan.recompute[s]);
    }
  };
  for (const Modules modules : p.selections) {
    set(modules, 0);
    if (cost() < best_ns && is_enough()) keep();
  }
  if (p.full) {
    // One more layer at a time, on the chunk whose layers are held most often for their time.
    set(0, 0);
    std::vector<double> weight(stages.size(), 0);
    for (const HeldMoment& m : p.held[rank])
      for (size_t c = 0; c < stages.size(); ++c) weight[c] = std::max(weight[c], double{1} * m.held[c] + m.waiting[c]);
    int32_t total = 0;
    for (const int32_t s : stages) total += size_of(s);
    bool enough = false;
    for (int32_t n = 0; n < total && !enough; ++n) {
      size_t next = stages.size();
      for (size_t c = 0; c < stages.size(); ++c)
        if (plan.recompute[stages[c]].full < size_of(stages[c]) && (next == stages.size() || weight[c] > weight[next]))
          next = c;
      ++plan.recompute[stages[next]].full;
      enough = is_enough();
    }
    // Of several chunks, an earlier one may need fewer once a later one has given enough.
    for (size_t c = 0; enough && stages.size() > 1 && c < stages.size(); ++c)
      while (plan.recompute[stages[c]].full > 0) {
        --plan.recompute[stages[c]].full;
        if (is_enough()) continue;
        ++plan.recompute[stages[c]].full;
        break;
      }
    if (enough) keep();
  }
  if (best.empty()) return false;
  for (size_t c = 0; c < stages.size(); ++c) plan.recompute[stages[c]] = best[c];
  return true;
}

bool recompute_all(const PlanProblem& p, const LayerSums& sums, Plan& plan) {
  plan.recompute.assign(plan.bounds.size() - 1, {});
  if (p.per_rank) {
    for (int32_t r = 0; r < p.ranks(); ++r)
      if (!recompute_rank(p, sums, r, plan)) return false;
    return true;
  }
  // One choice for all: nothing, a set of modules, or the first N layers of every virtual stage.
  const auto is_enough = [&] {
    for (int32_t r = 0; r < p.ranks(); ++r)
      if (!fits(p, r, peak_of(p, r, plan))) return false;
    return true;
  };
  const auto set = [&](Modules modules, int32_t full) {
    for (size_t s = 0; s + 1 < plan.bounds.size(); ++s)
      plan.recompute[s] = {modules, std::min(full, plan.bounds[s + 1] - plan.bounds[s])};
  };
  const auto cost = [&] {
    int64_t most = 0;
    for (size_t s = 0; s + 1 < plan.bounds.size(); ++s)
      most = std::max(most, again_ns(p, sums, plan.bounds[s], plan.recompute[s], plan.bounds[s + 1]));
    return most;
  };
  set(0, 0);
  if (is_enough()) return true;
  std::optional<Plan> best;
  int64_t best_ns = INT64_MAX;
  const auto keep = [&] {
    if (const int64_t ns = cost(); ns < best_ns && is_enough()) best_ns = ns, best = plan;
  };
  for (const Modules modules : p.selections) set(modules, 0), keep();
  int32_t widest = 0;
  for (const int32_t n : plan.layers()) widest = std::max(widest, n);
  for (int32_t n = p.all_or_none ? widest : 1; p.full && n <= widest; ++n) {
    set(0, n), keep();
    if (best && best->recompute == plan.recompute) break;
  }
  if (best) plan = std::move(*best);
  return best_ns < INT64_MAX;
}

std::vector<StageTime> stage_times(const PlanProblem& p, const LayerSums& sums, const Plan& plan) {
  std::vector<StageTime> times;
  for (int32_t s = 0; s < p.stages(); ++s) {
    const int32_t lo = plan.bounds[s], hi = plan.bounds[s + 1];
    StageTime t{sums.stage_forward(p, s, lo, hi), sums.stage_input(p, s, lo, hi), sums.stage_weight(p, s, lo, hi)};
    t.input += again_ns(p, sums, lo, plan.recompute[s], hi);
    for (int32_t i = lo; i < hi; ++i) {
      t.forward_comm += p.times.kinds[p.kind_of[i]].forward_comm;
      t.input_comm += p.times.kinds[p.kind_of[i]].input_comm;
    }
    times.push_back(t);
  }
  return times;
}

Result<std::vector<std::vector<ReplayedCell>>> cells_of(const PlanProblem& p, const std::vector<StageTime>& times) {
  return replay(p.schedule, costs_of(p, times));
}

Result<int64_t> span_of(const PlanProblem& p, const std::vector<StageTime>& times) {
  TRY(cells, cells_of(p, times));
  int64_t span = 0;
  for (const auto& rank : *cells)
    if (!rank.empty()) span = std::max(span, rank.back().end_ns);
  return span;
}

int64_t lower_bound_ns(const PlanProblem& p, const std::vector<StageTime>& times) {
  const int32_t stages = p.stages();
  const int64_t hop = least_latency(p);
  std::vector<int64_t> before(stages, 0), down(stages + 1, 0), after(stages, 0);
  // before: forwards of earlier stages; after: input gradients of earlier stages; down: from a stage to the end and
  // back. A message between two chunks of one rank costs nothing.
  const auto hops = [&](int32_t from, int32_t to) {
    if (p.schedule.layout == ChunkLayout::kV && from / p.ranks() != to / p.ranks()) return int64_t{0};
    return p.ranks() > 1 ? hop : 0;
  };
  const bool splits = splits_backward(p.schedule);
  const auto back_ns = [&](int32_t s) { return times[s].input + (splits ? 0 : times[s].weight); };
  for (int32_t s = 1; s < stages; ++s) {
    before[s] = before[s - 1] + times[s - 1].forward + hops(s - 1, s);
    after[s] = after[s - 1] + back_ns(s - 1) + hops(s - 1, s);
  }
  for (int32_t s = stages - 1; s >= 0; --s)
    down[s] = down[s + 1] + (s + 1 < stages ? times[s + 1].forward + back_ns(s + 1) + 2 * hops(s, s + 1) : 0);
  int64_t bound = 0;
  const bool whole = p.schedule.layout != ChunkLayout::kBidirectional;
  for (int32_t r = 0; r < p.ranks(); ++r) {
    const RankOrder& order = p.schedule.ranks[r];
    if (order.empty()) continue;
    // Work before the first backward, and after it; the trailing weight gradients.
    int64_t warm = 0, rest = 0, trailing = 0;
    int32_t first_stage = -1, first_backward = -1, last_backward = -1;
    int64_t first_forward = 0;
    for (const ScheduleCell& cell : order) {
      const auto actions = cell.actions();
      const int64_t ns = cell_ns(p, times, r, cell);
      const bool backward = std::ranges::any_of(actions, [](const Action& a) { return is_backward(a.kind); });
      if (first_stage < 0) {
        first_stage = virtual_stage(p.schedule, r, actions[0].chunk);
        first_forward = times[first_stage].forward;
      }
      if (backward && first_backward < 0)
        for (const Action& a : actions)
          if (is_backward(a.kind)) first_backward = virtual_stage(p.schedule, r, a.chunk);
      (first_backward < 0 ? warm : rest) += ns;
      trailing = actions[0].kind == CellKind::kWeightGrad ? trailing + ns : 0;
      if (backward)
        for (const Action& a : actions)
          if (is_backward(a.kind)) last_backward = virtual_stage(p.schedule, r, a.chunk);
    }
    int64_t wait = warm;
    // Of one chunk a rank, the first gradient comes after its own forward has gone down and come back.
    if (p.schedule.sizes.chunks == 1 && first_backward >= 0)
      wait = std::max(warm, first_forward + down[first_backward]);
    const int64_t start = whole ? before[first_stage] : 0;
    const int64_t drain = whole && last_backward >= 0 ? after[last_backward] : 0;
    // What follows the rank's last backward on earlier stages, if the rank ends with it.
    bound = std::max({bound, start + wait + rest, start + wait + rest - trailing + drain});
  }
  return bound;
}

}  // namespace stageline::plan
