#include "plan/pipeline.h"

namespace stageline::plan {
namespace {

int64_t cell_ns(const PlanProblem& p, const std::vector<LayerTime>& times, int32_t rank, const ScheduleCell& cell) {
  const auto time_of = [&](const Action& a) -> const LayerTime& {
    return times[virtual_stage(p.schedule, rank, a.chunk)];
  };
  const auto one = [&](const Action& a) {
    const LayerTime& t = time_of(a);
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

int64_t message_ns(const PlanProblem& p, int32_t from, int32_t to) {
  // A message that skips ranks, as between chunks, is none that a run recorded.
  if (p.times.there.empty() || std::abs(from - to) != 1) return p.times.latency;
  return from < to ? p.times.there[from] : p.times.back[to];
}

ReplayCosts costs_of(const PlanProblem& p, const std::vector<LayerTime>& times) {
  ReplayCosts costs;
  costs.latency_ns = p.times.latency;
  costs.cell_ns = [&p, &times](int32_t rank, const ScheduleCell& cell) { return cell_ns(p, times, rank, cell); };
  if (!p.times.there.empty())
    costs.arrival_ns = [&p](int32_t from, int32_t to, const Action&, int64_t sent) {
      return sent + message_ns(p, from, to);
    };
  return costs;
}

// The least latency of a message between ranks, for bounds.
int64_t min_latency(const PlanProblem& p) {
  int64_t least = p.times.latency;
  for (const auto* list : {&p.times.there, &p.times.back})
    for (const int64_t ns : *list) least = std::min(least, ns);
  return least;
}

std::vector<ChunkPart> parts_of(const PlanProblem& p, int32_t rank, const Plan& plan) {
  std::vector<ChunkPart> parts;
  for (int32_t c = 0; c < p.schedule.sizes.chunks; ++c) {
    const int32_t s = virtual_stage(p.schedule, rank, c);
    parts.push_back({s, plan.bounds[s], plan.bounds[s + 1], plan.recompute[s]});
  }
  return parts;
}

// Returns the smallest number up to `max` that is enough; max + 1 where none is. More than enough is enough, too.
template <class Enough> int32_t min_enough(int32_t max, Enough&& enough) {
  int32_t lo = 0, hi = max + 1;
  while (lo < hi) {
    const int32_t middle = lo + (hi - lo) / 2;
    enough(middle) ? hi = middle : lo = middle + 1;
  }
  return lo;
}

}  // namespace

bool splits_backward(const Schedule& schedule) {
  for (const RankOrder& order : schedule.ranks)
    for (const ScheduleCell& cell : order)
      if (cell.actions()[0].kind == CellKind::kWeightGrad) return true;
  return false;
}

LayerTime& LayerTime::operator+=(const LayerTime& o) {
  forward += o.forward, input += o.input, weight += o.weight;
  forward_comm += o.forward_comm, input_comm += o.input_comm;
  for (size_t k = 0; k < kModules; ++k) again[k] += o.again[k];
  return *this;
}

LayerTime LayerTime::operator-(const LayerTime& o) const {
  LayerTime out = {forward - o.forward, input - o.input, weight - o.weight, forward_comm - o.forward_comm,
                   input_comm - o.input_comm};
  for (size_t k = 0; k < kModules; ++k) out.again[k] = again[k] - o.again[k];
  return out;
}

Layers::Layers(const std::vector<uint8_t>& kinds) : kinds_(kinds) {
  for (const uint8_t kind : kinds) width_ = std::max<size_t>(width_, kind + size_t{1});
  before_.assign(width_, 0);
  for (const uint8_t kind : kinds) {
    for (size_t k = 0; k < width_; ++k) before_.push_back(before_[before_.size() - width_]);
    ++before_[before_.size() - width_ + kind];
  }
}

LayerSums::LayerSums(const PlanProblem& p) : before(1) {
  for (const uint8_t kind : p.kind_of) (before.emplace_back(before.back())) += p.times.kinds[kind];
}

LayerTime LayerSums::stage(const PlanProblem& p, int32_t stage, int32_t lo, int32_t hi) const {
  LayerTime out = before[hi] - before[lo];
  size_t direction = 0;
  for (int64_t* ns : {&out.forward, &out.input, &out.weight})
    if (const size_t d = direction++; !p.times.slow.empty())
      *ns = std::llround(static_cast<double>(*ns) * p.times.slow[stage][d]);
  if (stage == 0) out += p.times.embedding;
  if (stage + 1 == p.stages()) out += p.times.head;
  return out;
}

PlanProblem problem_of(Schedule schedule, const Model& model, const Layout& layout, const MemoryOptions& memory) {
  PlanProblem p;
  p.held = held_moments(schedule);
  p.schedule = std::move(schedule);
  p.memory = memory, p.limit = memory.limit;
  p.bytes = layout_bytes(model, layout, memory);
  p.bar = peak_bar(model, layout, memory);
  p.kind_of = model.kind_of;
  return p;
}

Plan plan_of(const std::vector<int32_t>& layers) {
  Plan plan;
  plan.bounds = {0};
  for (const int32_t n : layers) plan.bounds.push_back(plan.bounds.back() + n);
  plan.recompute.assign(layers.size(), {});
  return plan;
}

std::vector<int32_t> even_layers(int64_t layers, int32_t stages) {
  std::vector<int32_t> out;
  for (int32_t s = 0; s < stages; ++s)
    out.push_back(static_cast<int32_t>(layers / stages + (s < layers % stages ? 1 : 0)));
  return out;
}

std::vector<int32_t> Plan::layers() const {
  std::vector<int32_t> out;
  for (size_t s = 0; s + 1 < bounds.size(); ++s) out.push_back(bounds[s + 1] - bounds[s]);
  return out;
}

ChunkBytes chunk_bytes(const PlanProblem& p, int32_t stage, int32_t lo, int32_t hi, const Recompute& recompute) {
  ChunkBytes out;
  for (size_t kind = 0; kind < p.bytes.kinds.size(); ++kind) {
    const int32_t all = p.kind_of.count(kind, lo, hi);
    if (all == 0) continue;
    const int32_t full = p.kind_of.count(kind, lo, std::min(hi, lo + recompute.full));
    const LayerBytes& b = p.bytes.kinds[kind];
    double kept = b.act;
    for (size_t k = 0; k < kModules; ++k)
      if (recompute.modules >> k & 1) kept -= b.saved[k];
    const double act = full * b.input + (all - full) * kept;
    out.act += act, out.kept_by_w += act * b.w_keeps;
    out.recompute = std::max({out.recompute, full > 0 ? b.act - b.input : 0, full < all ? b.act - kept : 0});
    out.backward = std::max(out.backward, b.backward);
    out.states += b.states.times(all);
    out.kinds |= uint32_t{1} << kind;
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

RankPeak peak_of(const PlanProblem& p, int32_t rank, std::span<const ChunkPart> parts) {
  std::vector<ChunkBytes> chunks;
  chunks.reserve(parts.size());
  for (const ChunkPart& x : parts) chunks.push_back(chunk_bytes(p, x.stage, x.lo, x.hi, x.recompute));
  RankPeak peak = rank_peak(p.bytes, p.held[rank], chunks);
  if (!p.other_bytes.empty()) peak.other += static_cast<double>(p.other_bytes[rank]);
  return peak;
}

RankPeak peak_of(const PlanProblem& p, int32_t rank, const Plan& plan) {
  return peak_of(p, rank, parts_of(p, rank, plan));
}

bool fits(const PlanProblem& p, const RankPeak& peak) {
  return p.limit <= 0 || needed(peak, p.bar, p.memory) <= p.limit;
}

int64_t again_ns(const LayerSums& sums, int32_t lo, const Recompute& recompute, int32_t hi) {
  int64_t ns = sums.before[std::min(hi, lo + recompute.full)].forward - sums.before[lo].forward;
  for (size_t k = 0; k < kModules; ++k)
    if (recompute.modules >> k & 1) ns += sums.before[hi].again[k] - sums.before[lo].again[k];
  return ns;
}

bool recompute_rank(const PlanProblem& p, const LayerSums& sums, int32_t rank, std::span<ChunkPart> parts) {
  const auto is_enough = [&] { return p.limit <= 0 || fits(p, peak_of(p, rank, parts)); };
  int64_t best_ns = INT64_MAX;
  std::vector<ChunkPart> best;
  const auto consider = [&] {
    const int64_t ns =
        sum_over<int64_t>(parts, [&](const ChunkPart& x) { return again_ns(sums, x.lo, x.recompute, x.hi); });
    if (ns < best_ns && is_enough()) best_ns = ns, best.assign(parts.begin(), parts.end());
  };
  for (ChunkPart& x : parts) x.recompute = {};
  if (is_enough()) return true;
  for (const Modules modules : p.selections) {
    for (ChunkPart& x : parts) x.recompute = {modules, 0};
    consider();
  }
  if (p.full) {
    // Layers of the chunk that is held most often for its time come first.
    std::vector<std::pair<double, size_t>> order;
    int32_t total = 0;
    for (size_t c = 0; c < parts.size(); ++c) {
      order.emplace_back(0, c);
      for (const HeldMoment& m : p.held[rank])
        order[c].first = std::min(order[c].first, -1.0 * m.held[c] - m.waiting[c]);
      total += parts[c].layers();
    }
    std::ranges::sort(order);
    const auto fill = [&](int32_t n) {
      for (const auto& [_, c] : order) {
        parts[c].recompute = {0, std::min(n, parts[c].layers())};
        n -= parts[c].recompute.full;
      }
      return is_enough();
    };
    if (const int32_t n = min_enough(total, fill); n <= total) {
      fill(n);
      // An earlier chunk may need fewer once a later one has given enough.
      for (ChunkPart& x : parts) {
        if (parts.size() == 1) break;
        x.recompute.full = min_enough(x.recompute.full, [&](int32_t fewer) {
          x.recompute.full = fewer;
          return is_enough();
        });
      }
      consider();
    }
  }
  std::ranges::copy(best, parts.begin());
  return !best.empty();
}

bool recompute_all(const PlanProblem& p, const LayerSums& sums, Plan& plan) {
  plan.recompute.assign(plan.bounds.size() - 1, {});
  if (p.per_rank) {
    for (int32_t r = 0; r < p.ranks(); ++r) {
      std::vector<ChunkPart> parts = parts_of(p, r, plan);
      if (!recompute_rank(p, sums, r, parts)) return false;
      for (const ChunkPart& x : parts) plan.recompute[x.stage] = x.recompute;
    }
    return true;
  }
  // One choice for all: nothing, a set of modules, or the first N layers of every virtual stage.
  const auto is_enough = [&](const Recompute& all) {
    for (size_t s = 0; s + 1 < plan.bounds.size(); ++s)
      plan.recompute[s] = {all.modules, std::min(all.full, plan.bounds[s + 1] - plan.bounds[s])};
    for (int32_t r = 0; r < p.ranks() && p.limit > 0; ++r)
      if (!fits(p, peak_of(p, r, plan))) return false;
    return true;
  };
  if (is_enough({})) return true;
  std::vector<Recompute> choices;
  for (const Modules modules : p.selections) choices.push_back({modules, 0});
  if (p.full) {
    const int32_t widest = std::ranges::max(plan.layers());
    choices.push_back({0, p.all_or_none ? widest : std::min(widest, min_enough(widest, [&](int32_t n) {
                                                              return is_enough({0, n});
                                                            }))});
  }
  std::optional<Plan> best;
  int64_t best_ns = INT64_MAX;
  for (const Recompute& choice : choices) {
    if (!is_enough(choice)) continue;
    int64_t ns = 0;
    for (size_t s = 0; s + 1 < plan.bounds.size(); ++s)
      ns = std::max(ns, again_ns(sums, plan.bounds[s], plan.recompute[s], plan.bounds[s + 1]));
    if (ns < best_ns) best_ns = ns, best = plan;
  }
  if (best) plan = std::move(*best);
  return best_ns < INT64_MAX;
}

std::vector<LayerTime> stage_times(const PlanProblem& p, const LayerSums& sums, const Plan& plan) {
  std::vector<LayerTime> times;
  for (int32_t s = 0; s < p.stages(); ++s) {
    times.push_back(sums.stage(p, s, plan.bounds[s], plan.bounds[s + 1]));
    times.back().input += again_ns(sums, plan.bounds[s], plan.recompute[s], plan.bounds[s + 1]);
  }
  return times;
}

Result<std::vector<std::vector<ReplayedCell>>> cells_of(const PlanProblem& p, const std::vector<LayerTime>& times) {
  return replay(p.schedule, costs_of(p, times));
}

Result<int64_t> span_of(const PlanProblem& p, const std::vector<LayerTime>& times) {
  TRY(cells, cells_of(p, times));
  return span_of(*cells);
}

int64_t span_of(const PlanProblem& p, const RepeatedReplay& replay, const std::vector<LayerTime>& times) {
  return replay.span_ns([&](int32_t rank, const ScheduleCell& cell) { return cell_ns(p, times, rank, cell); },
                        [&](int32_t from, int32_t to) { return message_ns(p, from, to); });
}

int64_t span_of(const std::vector<std::vector<ReplayedCell>>& cells) {
  int64_t span = 0;
  for (const auto& rank : cells)
    if (!rank.empty()) span = std::max(span, rank.back().end_ns);
  return span;
}

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
