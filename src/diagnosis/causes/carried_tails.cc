#include "diagnosis/causes/carried_tails.h"

#include "pipeline/replay/step_draft.h"

namespace stageline {

CarriedTails::CarriedTails(const StepGraph& g) {
  const auto is_own = [&](uint32_t op) { return g.cell[op] != kNoCell && !is_message(g.kind[op]); };
  std::set<int32_t> before;  // ranks whose tails of the step before were carried
  const auto keep_ends = [&](size_t s) {
    for (uint32_t op = g.steps[s].begin; op < g.steps[s].end; ++op) {
      if (!is_own(op) || is_compute(g.kind[op])) continue;
      RankEnd& rank = ends_[s][g.part[op]];
      rank.end_ns = std::max(rank.end_ns, g.ended_ns(op));
      rank.ops.push_back(op);
    }
  };
  for (size_t s = 0; s < g.steps.size(); ++s) {
    const GraphStep& step = g.steps[s];
    if (s + 1 == g.steps.size() || g.steps[s + 1].step != step.step + 1) {
      for (uint32_t op = step.begin; op < step.end; ++op)
        if (is_own(op) && before.contains(g.part[op])) carried.emplace(op, s);
      if (!before.empty()) keep_ends(s);
      continue;
    }
    const GraphStep& next = g.steps[s + 1];
    const int64_t begins = next.start_ns - step.start_ns;  // counted from this step's start
    std::map<int32_t, std::vector<uint32_t>> tails;        // by part
    for (uint32_t op = step.begin; op < step.end; ++op)
      if (is_own(op) && g.ended_ns(op) > begins + kSameNs) tails[g.part[op]].push_back(op);
    before.clear();
    if (tails.empty()) continue;
    keep_ends(s);
    std::map<int32_t, uint32_t> first;  // by part
    for (uint32_t op = next.begin; op < next.end; ++op) {
      if (!is_compute(g.kind[op])) continue;
      const auto [own, fresh] = first.try_emplace(g.part[op], op);
      if (!fresh && g.start_ns[op] < g.start_ns[own->second]) own->second = op;
    }
    for (auto& [part, ops] : tails) {
      int64_t end = max_over<int64_t>(ops, [&](const uint32_t op) { return g.ended_ns(op); }, INT64_MIN);
      for (const uint32_t op : ops) carried.emplace(op, s);
      before.insert(part);
      const auto own = first.find(part);
      if (own == first.end()) continue;
      // From when the first operation could have begun, counted from the next step's start.
      const double free = static_cast<double>(g.start_ns[own->second]) - g.delay_ns[own->second];
      const double ns = std::min(static_cast<double>(end - begins) - free, g.delay_ns[own->second]);
      if (ns > kSameNs) held[own->second] = {ns, std::move(ops)};
    }
  }
}

CarriedTails::Shorter::Shorter(const CarriedTails& tails, std::function<double(uint32_t)> saved)
    : tails_(tails), saved_(std::move(saved)) {
  for (const auto& [step, ranks] : tails_.ends_) {
    double was = INFINITY, would_be = INFINITY;
    for (const auto& [part, rank] : ranks) {
      const auto end = static_cast<double>(rank.end_ns);
      was = std::min(was, end);
      would_be = std::min(would_be, end - sum_over<double>(rank.ops, [&](uint32_t op) { return saved_(op); }));
    }
    earlier_[step] = was - would_be;
  }
}

void CarriedTails::Shorter::apply(uint32_t op, double& dur, double& delay) const {
  if (const auto own = tails_.held.find(op); own != tails_.held.end()) {
    const std::vector<uint32_t>& ops = own->second.tails;
    const double ns = sum_over<double>(ops, [&](uint32_t tail) { return saved_(tail); });
    delay -= std::clamp(ns - earlier(tails_.carried.at(ops.front())), 0.0, own->second.ns);
  }
  const auto own = tails_.carried.find(op);
  dur -= own == tails_.carried.end() ? saved_(op) : std::min(saved_(op), earlier(own->second));
}

}  // namespace stageline
