#include "pipeline/sums/stage_costs.h"

#include "base/parallel.h"
#include "model/intervals.h"
#include "model/statistics.h"

namespace stageline {

namespace {

constexpr size_t kComputeKinds = 5;  // F, B, I, W, F&B

// Cells as costs. The two halves of an overlapped pair share their time, which is the cost of neither alone; the pair
// counts once, at its F. A backward whose loss is a cell of its own (loss_backwards()) costs the time of both.
class CostedCells {
 public:
  explicit CostedCells(const Cells& cells)
      : cells_(cells), pairs_(overlapped_pairs(cells)), loss_of_(loss_backwards(cells)) {
    for (size_t i = 0; i < loss_of_.size(); ++i)
      if (loss_of_[i] != kNoPair)
        loss_ns_[pairs_[loss_of_[i]] != kNoPair ? pairs_[loss_of_[i]] : loss_of_[i]] += cells.dur_ns(i);
  }

  // Returns the kind that a cell counts as; nothing where its time is part of another cell's or is not compute.
  std::optional<CellKind> kind(uint32_t i) const {
    if ((!loss_of_.empty() && loss_of_[i] != kNoPair) || !is_compute(cells_.kind[i])) return {};
    if (pairs_[i] == kNoPair) return cells_.kind[i];
    return cells_.kind[i] == CellKind::kForward ? std::optional(CellKind::kForwardBackward) : std::nullopt;
  }
  int64_t ns(uint32_t i) const {
    const auto loss = loss_ns_.find(i);
    return loss == loss_ns_.end() ? cells_.dur_ns(i) : sum_or_limit(cells_.dur_ns(i), loss->second);
  }

 private:
  const Cells& cells_;
  std::vector<uint32_t> pairs_, loss_of_;
  std::map<uint32_t, int64_t> loss_ns_;  // by the cell that it is added to
};

using CountedCell = std::function<bool(size_t cell)>;

// Returns the costs of one stage, whose cells are in `ranges`; their ratios are not known yet.
std::vector<StageCost> costs_of_stage(int32_t stage, const std::vector<RankRange>& ranges, const CostedCells& cells,
                                      const CountedCell& counts) {
  ByEnum<CellKind, std::vector<int64_t>, kComputeKinds> durations;
  for (const RankRange& range : ranges)
    for (uint32_t i = range.begin; i < range.end; ++i)
      if (const auto kind = cells.kind(i); kind && (!counts || counts(i))) durations[*kind].push_back(cells.ns(i));
  std::vector<StageCost> costs;
  for (size_t kind = 0; kind < kComputeKinds; ++kind) {
    std::vector<int64_t>& values = durations[kind];
    if (values.empty()) continue;
    const double sum = sum_over<double>(values);
    costs.push_back({stage, static_cast<CellKind>(kind), std::ssize(values), sum / values.size(),
                     percentile_of(values, 0.5), percentile_of(values, 0.95), 1});
  }
  return costs;
}

}  // namespace

std::vector<StageCost> stage_costs(const Trace& trace, const CountedCell& counts) {
  const CostedCells cells(trace.cells);
  std::map<int32_t, std::vector<RankRange>> ranges_of;  // stage → the ranges of its ranks, in the order of cells
  for (const RankRange& range : rank_ranges(trace.cells))
    if (range.step != kUnknown) ranges_of[trace.parts[range.part].stage].push_back(range);
  const std::vector<std::pair<int32_t, std::vector<RankRange>>> stages(ranges_of.begin(), ranges_of.end());
  std::vector<std::vector<StageCost>> of_stage(stages.size());
  parallel_for(stages.size(),
               [&](size_t s) { of_stage[s] = costs_of_stage(stages[s].first, stages[s].second, cells, counts); });
  std::vector<StageCost> costs;
  std::map<CellKind, std::vector<double>> means;
  for (const std::vector<StageCost>& own : of_stage) costs.insert(costs.end(), own.begin(), own.end());
  for (const StageCost& cost : costs) means[cost.kind].push_back(cost.mean_ns);
  std::map<CellKind, double> medians;
  for (auto& [kind, values] : means) medians[kind] = median_of(std::move(values));
  for (StageCost& cost : costs) {
    const double median = medians[cost.kind];
    cost.ratio_to_median = median > 0 ? cost.mean_ns / median : kNaN;
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
    const double time = cost.mean_ns * cost.count;
    const double usual = cost.p50_ns * cost.count;
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
    const double forwards = std::max<int64_t>(1, sum.forwards);
    const double backwards = std::max<int64_t>(1, sum.backwards);
    const double per = sum.forward / forwards + sum.backward / backwards;
    loads.push_back({stage, per, sum.usual_forward / forwards + sum.usual_backward / backwards, 1});
    values.push_back(per);
  }
  const double median = median_of(values);
  for (StageLoad& load : loads) load.ratio_to_median = median > 0 ? load.per_micro_batch_ns / median : kNaN;
  return loads;
}

}  // namespace stageline
