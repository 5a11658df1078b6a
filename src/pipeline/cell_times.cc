#include "pipeline/cell_times.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/parallel.h"
#include "model/overlapped_pairs.h"
#include "model/stage_costs.h"
#include "pipeline/sequence_lengths.h"

namespace stageline {
namespace {

constexpr size_t kMostPlaces = 10'000'000;
constexpr int32_t kMostChunks = 100'000'000;
constexpr size_t kLeastBatches = 8;  // for a correlation
constexpr double kAlike = 0.8;       // correlation from which lengths are the micro-batches' own

double correlation_of(const std::vector<std::pair<double, double>>& points) {
  if (points.size() < kLeastBatches) return 0;
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  const auto n = static_cast<double>(points.size());
  for (const auto& [a, b] : points) x += a / n, y += b / n;
  for (const auto& [a, b] : points) xx += (a - x) * (a - x), yy += (b - y) * (b - y), xy += (a - x) * (b - y);
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

}  // namespace

CellTimes::CellTimes(const Trace& trace, const StepGraph& graph, const std::vector<bool>& counts)
    : graph_(graph), counts_(counts) {
  const std::vector<uint32_t> pairs = overlapped_pairs(trace.cells);
  std::vector<uint32_t> partner;  // by operation; empty: no pair overlaps
  if (std::any_of(pairs.begin(), pairs.end(), [](uint32_t other) { return other != kNoPair; })) {
    std::vector<uint32_t> op_of(trace.cells.size(), kNone);
    for (uint32_t op = 0; op < graph.size(); ++op)
      if (graph.cell[op] != kNoCell) op_of[graph.cell[op]] = op;
    overlapped_.resize(graph.size());
    partner.assign(graph.size(), kNone);
    for (uint32_t op = 0; op < graph.size(); ++op) {
      if (graph.cell[op] == kNoCell || pairs[graph.cell[op]] == kNoPair) continue;
      overlapped_[op] = 1;
      partner[op] = op_of[pairs[graph.cell[op]]];
    }
  }
  find_workers();
  worker_factor_.assign(workers_.size(), 1.0);
  find_sequences(partner);
}

void CellTimes::find_workers() {
  const StepGraph& g = graph_;
  stages_ = std::max(g.stage_count, 1);
  for (size_t op = 0; op < g.size(); ++op)
    if (is_compute(g.kind[op])) chunks_ = std::max(chunks_, std::min(g.chunk[op], kMostChunks) + 1);
  // Labels that are no chunks of a model.
  if (place_count() > kMostPlaces) chunks_ = 1;
  std::map<std::pair<int32_t, int32_t>, uint32_t> index;
  std::vector<uint32_t> of_part;  // its worker; kNone: not met yet
  worker_.assign(g.size(), kNone);
  for (uint32_t op = 0; op < g.size(); ++op) {
    if (!is_compute(g.kind[op]) || g.stage(op) == kUnknown || (chunks_ > 1 && g.chunk[op] < 0)) continue;
    const auto part = static_cast<size_t>(g.part[op]);
    if (part >= of_part.size()) of_part.resize(part + 1, kNone);
    if (of_part[part] == kNone) {
      const int32_t dp = std::max(g.dp(op), 0);
      const auto [at, fresh] = index.try_emplace({dp, g.stage(op)}, static_cast<uint32_t>(workers_.size()));
      if (fresh) workers_.push_back({dp, g.stage(op), g.part[op]});
      Worker& worker = workers_[at->second];
      worker.part = std::min(worker.part, g.part[op]);
      of_part[part] = at->second;
    }
    worker_[op] = of_part[part];
  }
}

// Only where forwards and backwards are long together: a cell that is long by chance says nothing about its
// micro-batch.
void CellTimes::find_sequences(const std::vector<uint32_t>& partner) {
  const StepGraph& g = graph_;
  std::vector<std::vector<double>> of_place(place_count());
  for (size_t s = 0; s < g.steps.size(); ++s)
    for (uint32_t op = g.steps[s].begin; counts_[s] && op < g.steps[s].end; ++op)
      if (worker_[op] != kNone) of_place[place_of(op)].push_back(g.dur_ns[op]);
  std::vector<double> usual(of_place.size());
  parallel_for(usual.size(), [&](size_t p) { usual[p] = median_of(std::move(of_place[p])); });
  std::vector<double> ratio(g.size());
  parallel_for(g.steps.size(), [&](size_t s) {
    for (uint32_t op = g.steps[s].begin; op < g.steps[s].end; ++op)
      if (worker_[op] != kNone && usual[place_of(op)] > 0) ratio[op] = g.dur_ns[op] / usual[place_of(op)];
  });
  const SequenceLengths lengths = sequence_lengths(g, counts_, ratio, partner, kLong);
  for (const SequenceLengths::Batch& batch : lengths.batches) {
    if (!counts_[batch.step]) continue;
    ++sequences_.all;
    if (batch.factor < kLong) continue;
    ++sequences_.long_ones;
    sequences_.long_factor += batch.factor;
  }
  sequences_.correlation = correlation_of(lengths.forward_backward);
  if (sequences_.long_ones > 0) sequences_.long_factor /= static_cast<double>(sequences_.long_ones);
  if (sequences_.correlation < kAlike || sequences_.long_ones == 0) return;
  factor_.assign(g.size(), 1.0F), without_long_.assign(g.size(), 1.0F), even_.assign(g.size(), 1.0F);
  for (uint32_t op = 0; op < g.size(); ++op) {
    if (lengths.batch_of[op] == kNone) continue;
    // Of an overlapped pair each half has its part.
    const bool pair = !partner.empty() && partner[op] != kNone && lengths.batch_of[partner[op]] != kNone;
    const double part = !pair ? 1 : g.kind[op] == CellKind::kForward ? lengths.forward_part : 1 - lengths.forward_part;
    double factor = 0, usual_ones = 0, length = 0, even = 0;
    bool known = true;
    for (const bool other : {false, true}) {
      const double share = other ? 1 - part : part;
      if (!(share > 0)) continue;
      const SequenceLengths::Batch& batch = lengths.batches[lengths.batch_of[other ? partner[op] : op]];
      factor += share * batch.factor;
      usual_ones += share * (batch.factor < kLong ? batch.factor : 1);
      length += share * batch.length;
      even += share * batch.even;
      known = known && batch.length > 0;
    }
    if (!(factor > 0)) continue;
    factor_[op] = static_cast<float>(factor);
    if (usual_ones > 0) without_long_[op] = static_cast<float>(factor / usual_ones);
    if (known && even > 0) even_[op] = static_cast<float>(even / length);
  }
}

std::vector<double> CellTimes::place_means() const {
  std::vector<double> sum(place_count());
  std::vector<int64_t> count(place_count());
  for (size_t s = 0; s < graph_.steps.size(); ++s)
    for (uint32_t op = graph_.steps[s].begin; counts_[s] && op < graph_.steps[s].end; ++op) {
      if (worker_[op] == kNone) continue;
      sum[place_of(op)] += time_ns(op);
      ++count[place_of(op)];
    }
  for (size_t p = 0; p < sum.size(); ++p) sum[p] /= static_cast<double>(count[p]);  // 0 ÷ 0: NaN
  return sum;
}

std::vector<std::vector<double>> CellTimes::worker_loads() const {
  const std::vector<double> usual = place_means();
  std::vector<std::vector<double>> sum(workers_.size(), std::vector<double>(graph_.steps.size())), count = sum;
  for (size_t s = 0; s < graph_.steps.size(); ++s)
    for (uint32_t op = graph_.steps[s].begin; counts_[s] && op < graph_.steps[s].end; ++op) {
      if (worker_[op] == kNone || !(usual[place_of(op)] > 0)) continue;
      // Weighed by what the place takes: a slow backward counts for more than a slow forward.
      sum[worker_[op]][s] += time_ns(op);
      count[worker_[op]][s] += usual[place_of(op)];
    }
  for (size_t w = 0; w < sum.size(); ++w)
    for (size_t s = 0; s < sum[w].size(); ++s) sum[w][s] /= count[w][s];
  return sum;
}

}  // namespace stageline
