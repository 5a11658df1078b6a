#include "diagnosis/causes/carried_tails.h"

#include <algorithm>

#include "base/number.h"
#include "pipeline/replay/step_draft.h"

namespace stageline {

CarriedTails::CarriedTails(const StepGraph& g) {
  const auto is_own = [&](uint32_t op) { return g.cell[op] != kNoCell && !is_message(g.kind[op]); };
  std::set<int32_t> before;  // ranks whose tails of the step before were carried
  for (size_t s = 0; s < g.steps.size(); ++s) {
    const GraphStep& step = g.steps[s];
    if (s + 1 == g.steps.size() || g.steps[s + 1].step != step.step + 1) {
      for (uint32_t op = step.begin; op < step.end; ++op)
        if (is_own(op) && before.contains(g.part[op])) carried.insert(op);
      continue;
    }
    const GraphStep& next = g.steps[s + 1];
    const int64_t begins = next.start_ns - step.start_ns;  // counted from this step's start
    std::map<int32_t, std::vector<uint32_t>> tails;        // by part
    for (uint32_t op = step.begin; op < step.end; ++op)
      if (is_own(op) && g.ended_ns(op) > begins + kSameNs) tails[g.part[op]].push_back(op);
    before.clear();
    if (tails.empty()) continue;
    std::map<int32_t, uint32_t> first;  // by part
    for (uint32_t op = next.begin; op < next.end; ++op) {
      if (!is_compute(g.kind[op])) continue;
      const auto [own, fresh] = first.try_emplace(g.part[op], op);
      if (!fresh && g.start_ns[op] < g.start_ns[own->second]) own->second = op;
    }
    for (auto& [part, ops] : tails) {
      int64_t end = INT64_MIN;
      for (const uint32_t op : ops) end = std::max(end, g.ended_ns(op));
      carried.insert(ops.begin(), ops.end());
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

void CarriedTails::shorten(uint32_t op, const std::function<double(uint32_t)>& saved, double& dur,
                           double& delay) const {
  if (const auto own = held.find(op); own != held.end()) {
    const double ns = sum_over<double>(own->second.tails, [&](const uint32_t tail) { return saved(tail); });
    delay -= std::min(own->second.ns, ns);
  }
  if (!carried.contains(op)) dur -= saved(op);
}

}  // namespace stageline
