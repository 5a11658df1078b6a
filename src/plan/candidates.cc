// Makes problems of layouts, and prices their plans.
#include "plan/search.h"
#include "schedules/registry.h"

namespace stageline::plan {
namespace {

std::vector<Modules> selections_of(const Wish& w, bool keeps_experts) {
  std::vector<Modules> out;
  if (w.recompute == RecomputeWish::kNone || w.recompute == RecomputeWish::kFull || w.framework->all_or_none)
    return out;
  constexpr int kNorm = 1, kAct = 2, kUp = 4, kMlp = 8, kCore = 16;  // in the order of Module
  const int none =
      (w.model.moe || w.framework->dense_act ? 0 : kAct) | (w.model.mla ? 0 : kUp) | (keeps_experts ? kMlp : 0);
  const auto add = [&](int more) {
    for (const int set :
         {kNorm, kAct, kNorm | kAct, kUp, kNorm | kUp, kNorm | kUp | kAct, kNorm | kUp | kMlp, kMlp, kNorm | kMlp})
      if ((set & none) == 0) out.push_back(static_cast<Modules>(set | more));
  };
  if (!w.rates.memory.flash) out.push_back(kCore);
  add(0);
  if (!w.rates.memory.flash) add(kCore);
  return out;
}

}  // namespace

Result<PlanProblem> problem_of(const Wish& w, const Layout& l, const std::string& schedule, int32_t chunks, int32_t m) {
  ScheduleSizes sizes;
  sizes.stages = l.pp, sizes.micro_batches = m, sizes.chunks = chunks;
  TRY(made, make_schedule(schedule, sizes));
  PlanProblem p = problem_of(std::move(*made), w.model, l, w.rates.memory);
  p.times = w.recorded ? *w.recorded : estimated_times(w.model, l, w.rates);
  // Both directions of a bidirectional pipeline would pass an empty stage, and the other would do all the work.
  p.min_layers = w.framework->empty_stages && p.schedule.layout != ChunkLayout::kBidirectional ? 0 : 1;
  const bool keeps_experts = schedule == "vpp-ep-overlap";  // Megatron refuses to compute these or layers again
  p.full = !keeps_experts && (w.recompute == RecomputeWish::kFull || w.recompute == RecomputeWish::kAuto);
  p.per_rank = w.per_rank.value_or(w.framework->per_rank);
  p.all_or_none = w.framework->all_or_none;
  p.selections = selections_of(w, keeps_experts);
  if (std::ssize(w.other_bytes) == p.ranks()) p.other_bytes = w.other_bytes;
  return p;
}

int64_t step_of(const Wish& w, const PlanProblem& p, const Layout& l, const Plan& plan,
                const std::vector<std::vector<ReplayedCell>>& cells, const RateOptions& rates) {
  if (!w.recorded) return step_ns(p, plan, cells, step_ends(p, plan, l, rates));
  return span_of(cells) + std::llround(w.recorded_rest_ns);
}

Candidate priced(const Wish& w, const PlanProblem& p, const Layout& l, Plan plan, int64_t bound_ns) {
  Candidate c;
  c.layout = l;
  c.schedule = p.schedule.name, c.chunks = p.schedule.sizes.chunks, c.group = p.schedule.sizes.group;
  c.micro_batches = p.schedule.sizes.micro_batches;
  const LayerSums sums(p);
  const std::vector<LayerTime> times = stage_times(p, sums, plan);
  if (const auto cells = cells_of(p, times)) {
    int64_t busy = 0;
    for (const auto& rank : *cells)
      for (const ReplayedCell& cell : rank) busy += cell.end_ns - cell.start_ns;
    plan.span_ns = span_of(*cells);
    c.step_ns = step_of(w, p, l, plan, *cells, w.rates);
    if (plan.span_ns > 0) c.bubble = 1 - static_cast<double>(busy) / p.ranks() / static_cast<double>(plan.span_ns);
  }
  c.bound_ns = bound_ns > 0 ? std::min(c.step_ns, bound_ns + c.step_ns - plan.span_ns) : 0;
  c.error_ns = (w.recorded ? w.recorded_error : w.calibrated ? 0.08 : 0.2) * static_cast<double>(c.step_ns);
  const double tokens = w.sequence * l.micro_batch * c.micro_batches * l.dp;
  const double peak_flops = w.rates.fp8 ? w.rates.hardware.fp8_flops : w.rates.hardware.bf16_flops;
  c.mfu = kNaN;
  if (c.step_ns > 0 && peak_flops > 0 && w.model.sized())
    c.mfu = total_flops(w.model, w.sequence) * tokens / (static_cast<double>(c.step_ns) / 1e9) /
            (peak_flops * l.tp * l.cp * l.pp * l.dp);
  if (c.mfu > 1) c.mfu = kNaN;  // the recorded times are not those of this hardware
  c.plan = std::move(plan);
  for (int32_t r = 0; r < p.ranks(); ++r) {
    c.peaks.push_back(peak_of(p, r, c.plan));
    const double need = needed(c.peaks.back(), p.bar, p.memory);
    if (r == 0 || need > c.needed_bytes) c.needed_bytes = need, c.peak_rank = r, c.peak_bytes = c.peaks.back().sum();
  }
  return c;
}

Candidate with_most_recompute(const Wish& w, const PlanProblem& p, const Layout& l) {
  Plan plan = plan_of(std::ssize(w.split) == p.stages() ? w.split : even_layers(p.kind_of.size(), p.stages()));
  for (int32_t s = 0; s < p.stages() && p.full; ++s) plan.recompute[s].full = plan.bounds[s + 1] - plan.bounds[s];
  return priced(w, p, l, std::move(plan), 0);
}

}  // namespace stageline::plan
