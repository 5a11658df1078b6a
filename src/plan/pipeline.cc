#include "plan/pipeline.h"

namespace stageline::plan {
namespace {

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

}  // namespace

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

std::vector<ChunkPart> parts_of(const PlanProblem& p, int32_t rank, const Plan& plan) {
  std::vector<ChunkPart> parts;
  for (int32_t c = 0; c < p.schedule.sizes.chunks; ++c) {
    const int32_t s = virtual_stage(p.schedule, rank, c);
    parts.push_back({s, plan.bounds[s], plan.bounds[s + 1], plan.recompute[s]});
  }
  return parts;
}

RankPeak peak_of(const PlanProblem& p, int32_t rank, std::span<const ChunkPart> parts) {
  auto chunks =
      mapped<ChunkBytes>(parts, [&](const ChunkPart& x) { return chunk_bytes(p, x.stage, x.lo, x.hi, x.recompute); });
  RankPeak peak = rank_peak(p.bytes, p.held[rank], chunks);
  if (!p.other_bytes.empty()) peak.other += static_cast<double>(p.other_bytes[rank]);
  return peak;
}

RankPeak peak_of(const PlanProblem& p, int32_t rank, const Plan& plan) {
  return peak_of(p, rank, parts_of(p, rank, plan));
}

int64_t again_ns(const LayerSums& sums, int32_t lo, const Recompute& recompute, int32_t hi) {
  int64_t ns = sums.before[std::min(hi, lo + recompute.full)].forward - sums.before[lo].forward;
  for (size_t k = 0; k < kModules; ++k)
    if (recompute.modules >> k & 1) ns += sums.before[hi].again[k] - sums.before[lo].again[k];
  return ns;
}

bool fits(const PlanProblem& p, const RankPeak& peak) {
  return p.limit <= 0 || needed(peak, p.bar, p.memory) <= p.limit;
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

}  // namespace stageline::plan
