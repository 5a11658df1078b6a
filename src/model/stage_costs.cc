#include "model/stage_costs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/number.h"
#include "model/overlapped_pairs.h"

namespace stageline {

double median_of(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const size_t n = values.size();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(n / 2);
  std::nth_element(values.begin(), middle, values.end());
  return n % 2 == 1 ? *middle : (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double percentile_of_sorted(const std::vector<int64_t>& sorted, double share) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double fraction = at - static_cast<double>(below);
  return static_cast<double>(sorted[below]) + fraction * static_cast<double>(sorted[above] - sorted[below]);
}

namespace {

// The same of values in any order, which are partly sorted on the way.
double percentile_of(std::vector<int64_t>& values, double share) {
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = values.begin() + static_cast<std::ptrdiff_t>(at);
  std::nth_element(values.begin(), below, values.end());
  if (below + 1 == values.end()) return static_cast<double>(*below);
  const double fraction = at - std::floor(at);
  return static_cast<double>(*below) +
         fraction * static_cast<double>(*std::min_element(below + 1, values.end()) - *below);
}

}  // namespace

std::vector<StageCost> stage_costs(const Trace& trace, const std::function<bool(size_t cell)>& counts) {
  const Cells& cells = trace.cells;
  std::map<std::pair<int32_t, CellKind>, std::vector<int64_t>> durations;
  const std::vector<uint32_t> pairs = overlapped_pairs(cells);
  // A backward whose loss is marked apart costs both.
  const std::vector<uint32_t> loss_of = loss_backwards(cells);
  std::map<uint32_t, int64_t> loss_ns;
  for (size_t i = 0; i < cells.size(); ++i)
    if (loss_of[i] != kNoPair)
      loss_ns[pairs[loss_of[i]] != kNoPair ? pairs[loss_of[i]] : loss_of[i]] += cells.dur_ns(i);
  for (size_t i = 0; i < cells.size(); ++i) {
    if (loss_of[i] != kNoPair) continue;
    if (!is_compute(cells.kind[i]) || cells.step[i] == kUnknown || (counts && !counts(i))) continue;
    // The halves of an overlapped pair share their time: it is the cost of neither, and counts once.
    const bool paired = pairs[i] != kNoPair;
    if (paired && cells.kind[i] != CellKind::kForward) continue;
    const CellKind kind = paired ? CellKind::kForwardBackward : cells.kind[i];
    const auto loss = loss_ns.find(static_cast<uint32_t>(i));
    durations[{trace.parts[static_cast<size_t>(cells.part[i])].stage, kind}].push_back(
        sum_or_limit(cells.dur_ns(i), loss == loss_ns.end() ? 0 : loss->second));
  }
  std::vector<StageCost> costs;
  std::map<CellKind, std::vector<double>> means;
  for (auto& [key, values] : durations) {
    double sum = 0;
    for (const int64_t v : values) sum += static_cast<double>(v);
    StageCost cost{key.first,
                   key.second,
                   static_cast<int64_t>(values.size()),
                   sum / static_cast<double>(values.size()),
                   percentile_of(values, 0.5),
                   percentile_of(values, 0.95),
                   1};
    means[cost.kind].push_back(cost.mean_ns);
    costs.push_back(cost);
  }
  std::map<CellKind, double> medians;
  for (auto& [kind, values] : means) medians[kind] = median_of(std::move(values));
  for (StageCost& cost : costs) {
    const double median = medians[cost.kind];
    cost.ratio_to_median = median > 0 ? cost.mean_ns / median : std::numeric_limits<double>::quiet_NaN();
  }
  return costs;
}

std::vector<StageLoad> stage_loads(const std::vector<StageCost>& costs) {
  struct Sum {
    double forward = 0, backward = 0;
    double usual_forward = 0, usual_backward = 0;
    int64_t forwards = 0, backwards = 0;
  };
  std::map<int32_t, Sum> total;
  for (const StageCost& cost : costs) {
    Sum& sum = total[cost.stage];
    const double time = cost.mean_ns * static_cast<double>(cost.count);
    const double usual = cost.p50_ns * static_cast<double>(cost.count);
    const bool both = cost.kind == CellKind::kForwardBackward;
    if (cost.kind == CellKind::kForward || both) {
      sum.forward += time;
      sum.usual_forward += usual;
      sum.forwards += cost.count;
    } else {
      sum.backward += time;
      sum.usual_backward += usual;
    }
    if (is_backward(cost.kind) || both) sum.backwards += cost.count;
  }
  std::vector<StageLoad> loads;
  std::vector<double> values;
  for (const auto& [stage, sum] : total) {
    const auto forwards = static_cast<double>(std::max<int64_t>(1, sum.forwards));
    const auto backwards = static_cast<double>(std::max<int64_t>(1, sum.backwards));
    const double per = sum.forward / forwards + sum.backward / backwards;
    loads.push_back({stage, per, sum.usual_forward / forwards + sum.usual_backward / backwards, 1});
    values.push_back(per);
  }
  const double median = median_of(values);
  for (StageLoad& load : loads)
    load.ratio_to_median = median > 0 ? load.per_micro_batch_ns / median : std::numeric_limits<double>::quiet_NaN();
  return loads;
}

}  // namespace stageline
