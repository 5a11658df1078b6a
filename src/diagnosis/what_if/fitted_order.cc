#include "diagnosis/what_if/fitted_order.h"

#include "pipeline/replay/replay.h"
#include "schedules/build.h"

namespace stageline {
namespace {

int64_t span_of(const LinkCosts& c, const std::vector<int32_t>& extra) {
  const Schedule order = fitted_1f1b(static_cast<int32_t>(c.forward.size()), c.micro_batches, extra);
  ReplayCosts costs;
  costs.cell_ns = [&](int32_t rank, const ScheduleCell& cell) {
    return cell.actions()[0].kind == CellKind::kForward ? c.forward[rank] : c.backward[rank];
  };
  costs.arrival_ns = [&](int32_t from, int32_t to, const Action&, int64_t sent) {
    return sent + (from < to ? c.there[from] : c.back[to]);
  };
  const auto cells = replay(order, costs);
  if (!cells) return INT64_MAX;
  return max_over<int64_t>(*cells, [&](const auto& rank) { return rank.back().end_ns; });
}

}  // namespace

Schedule fitted_1f1b(int32_t stages, int32_t micro_batches, const std::vector<int32_t>& extra) {
  Schedule out;
  out.name = "1f1b";
  out.sizes.stages = stages, out.sizes.micro_batches = micro_batches;
  for (int32_t s = 0; s < stages; ++s)
    out.ranks.push_back(warm_alternate(std::min(micro_batches, stages - s + extra[s]), micro_batches));
  return out;
}

FittedOrder fit_order(const LinkCosts& costs, const std::vector<int32_t>& room) {
  const size_t stages = costs.forward.size();
  FittedOrder best;
  std::vector<int32_t> extra(stages, 0);
  best.extra = extra;
  best.plain_ns = best.span_ns = span_of(costs, extra);
  const auto consider = [&](const std::vector<int32_t>& trial) {
    const int64_t span = span_of(costs, trial);
    if (span >= best.span_ns) return false;
    best.span_ns = span, best.extra = trial;
    return true;
  };
  double combinations = 1;
  for (const int32_t r : room) combinations *= r + 1;
  if (combinations <= 10'000) {
    const std::function<void(size_t, int32_t)> each = [&](size_t s, int32_t most) {
      if (s == stages) {
        consider(extra);
        return;
      }
      for (int32_t n = 0; n <= std::min(most, room[s]); ++n) {
        extra[s] = n;
        each(s + 1, n);
      }
      extra[s] = 0;
    };
    each(0, room.empty() ? 0 : room[0]);
    return best;
  }
  // In front of each slow link as many as its way there and back takes forwards and backwards.
  for (size_t s = 0; s + 1 < stages; ++s) {
    const int64_t both = costs.there[s] + costs.back[s],
                  pair = std::max<int64_t>(1, costs.forward[s] + costs.backward[s]);
    for (size_t k = 0; k <= s; ++k)
      extra[k] += static_cast<int32_t>(std::min<int64_t>(room[k], (both + pair - 1) / pair));
  }
  for (size_t s = 0; s < stages; ++s) extra[s] = std::min({extra[s], room[s], s > 0 ? extra[s - 1] : room[0]});
  consider(extra);
  for (bool better = true; better;) {
    better = false;
    for (size_t s = 0; s < stages; ++s)
      for (const int32_t step : {1, -1}) {
        std::vector<int32_t> trial = best.extra;
        trial[s] += step;
        if (trial[s] < 0 || trial[s] > room[s] || (s > 0 && trial[s] > trial[s - 1]) ||
            (s + 1 < stages && trial[s] < trial[s + 1]))
          continue;
        better |= consider(trial);
      }
  }
  return best;
}

}  // namespace stageline
