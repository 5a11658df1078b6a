#include "pipeline/cell_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/parallel.h"
#include "model/overlapped_pairs.h"
#include "model/stage_costs.h"

namespace stageline {
namespace {

constexpr size_t kMostPlaces = 10'000'000;
constexpr int32_t kMostChunks = 100'000'000;
constexpr size_t kLeastOps = 3;      // of a micro-batch, for its length to be told
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
  if (std::any_of(pairs.begin(), pairs.end(), [](uint32_t other) { return other != kNoPair; })) {
    overlapped_.resize(graph.size());
    for (size_t op = 0; op < graph.size(); ++op)
      overlapped_[op] = graph.cell[op] != kNoCell && pairs[graph.cell[op]] != kNoPair;
  }
  find_workers();
  worker_factor_.assign(workers_.size(), 1.0);
  find_sequences();
}

void CellTimes::find_workers() {
  const StepGraph& g = graph_;
  stages_ = std::max(g.stage_count, 1);
  for (size_t op = 0; op < g.size(); ++op)
    if (is_compute(g.kind[op])) chunks_ = std::max(chunks_, std::min(g.chunk[op], kMostChunks) + 1);
  // Labels that are no chunks of a model.
  if (place_count() > kMostPlaces) chunks_ = 1;
  std::map<std::pair<int32_t, int32_t>, uint32_t> index;
  worker_.assign(g.size(), kNone);
  for (uint32_t op = 0; op < g.size(); ++op) {
    if (!is_compute(g.kind[op]) || g.stage[op] == kUnknown || (chunks_ > 1 && g.chunk[op] < 0)) continue;
    const int32_t dp = std::max(g.dp[op], 0);
    const auto [at, fresh] = index.try_emplace({dp, g.stage[op]}, static_cast<uint32_t>(workers_.size()));
    if (fresh) workers_.push_back({dp, g.stage[op], g.part[op]});
    Worker& worker = workers_[at->second];
    worker.part = std::min(worker.part, g.part[op]);
    worker_[op] = at->second;
  }
}

// A micro-batch's factor: the median over its cells of time ÷ the median time of their place, to the median of its
// step and replica. Only where forwards and backwards are long together: a cell that is long by chance says nothing
// about its micro-batch.
void CellTimes::find_sequences() {
  const StepGraph& g = graph_;
  std::vector<std::vector<double>> of_place(place_count());
  for (size_t s = 0; s < g.steps.size(); ++s)
    for (uint32_t op = g.steps[s].begin; counts_[s] && op < g.steps[s].end; ++op)
      if (worker_[op] != kNone) of_place[place_of(op)].push_back(g.dur_ns[op]);
  std::vector<double> usual(of_place.size());
  for (size_t p = 0; p < usual.size(); ++p) usual[p] = median_of(std::move(of_place[p]));

  std::vector<float> factor(g.size(), 1.0F), even(g.size(), 1.0F);
  std::vector<StepSequences> of_steps(g.steps.size());
  parallel_for(g.steps.size(), [&](size_t s) { sequences_of_step(s, usual, factor, even, of_steps[s]); });
  std::vector<std::pair<double, double>> forward_backward;
  for (size_t s = 0; s < g.steps.size(); ++s) {
    if (!counts_[s]) continue;
    const StepSequences& step = of_steps[s];
    sequences_.all += step.all;
    for (const double f : step.long_ones) sequences_.long_factor += f;
    sequences_.long_ones += static_cast<int64_t>(step.long_ones.size());
    forward_backward.insert(forward_backward.end(), step.forward_backward.begin(), step.forward_backward.end());
  }
  sequences_.correlation = correlation_of(forward_backward);
  if (sequences_.long_ones > 0) sequences_.long_factor /= static_cast<double>(sequences_.long_ones);
  if (sequences_.correlation < kAlike || sequences_.long_ones == 0) return;
  factor_ = std::move(factor);
  even_ = std::move(even);
}

void CellTimes::sequences_of_step(size_t s, const std::vector<double>& usual, std::vector<float>& factor,
                                  std::vector<float>& even, StepSequences& out) const {
  const StepGraph& g = graph_;
  std::vector<uint32_t> ops;
  for (uint32_t op = g.steps[s].begin; op < g.steps[s].end; ++op)
    if (worker_[op] != kNone && g.micro_batch[op] != kUnknown && usual[place_of(op)] > 0) ops.push_back(op);
  const auto key = [&](uint32_t op) { return std::pair(g.dp[op], g.micro_batch[op]); };
  std::stable_sort(ops.begin(), ops.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  std::vector<double> of_step;
  for (size_t first = 0; first < ops.size();) {      // a replica
    std::vector<std::pair<size_t, double>> batches;  // (first of its ops, factor)
    std::vector<std::pair<double, double>> pairs;
    size_t i = first;
    while (i < ops.size() && g.dp[ops[i]] == g.dp[ops[first]]) {
      const size_t begin = i;
      std::vector<double> ratios, forward, backward;
      for (; i < ops.size() && key(ops[i]) == key(ops[begin]); ++i) {
        ratios.push_back(g.dur_ns[ops[i]] / usual[place_of(ops[i])]);
        (g.kind[ops[i]] == CellKind::kForward ? forward : backward).push_back(ratios.back());
      }
      const bool known = ratios.size() >= kLeastOps;
      if (known && !forward.empty() && !backward.empty())
        pairs.emplace_back(median_of(std::move(forward)), median_of(std::move(backward)));
      batches.emplace_back(begin, known ? median_of(std::move(ratios)) : std::numeric_limits<double>::quiet_NaN());
    }
    std::vector<double> values;
    for (const auto& [begin, f] : batches)
      if (!std::isnan(f)) values.push_back(f);
    const double middle = median_of(std::move(values));
    for (size_t b = 0; b < batches.size(); ++b) {
      const double f = middle > 0 && !std::isnan(batches[b].second) ? batches[b].second / middle : 1;
      const size_t end = b + 1 < batches.size() ? batches[b + 1].first : i;
      const double length = std::isnan(batches[b].second) ? 0 : batches[b].second;
      for (size_t k = batches[b].first; k < end; ++k) {
        factor[ops[k]] = static_cast<float>(f);
        even[ops[k]] = static_cast<float>(length);
      }
      if (length > 0) of_step.push_back(length);
      ++out.all;
      if (f >= kLong) out.long_ones.push_back(f);
    }
    for (const auto& [x, y] : pairs)
      if (middle > 0) out.forward_backward.emplace_back(x / middle, y / middle);
    first = i;
  }
  const double mean = std::accumulate(of_step.begin(), of_step.end(), 0.0) / static_cast<double>(of_step.size());
  for (const uint32_t op : ops)
    even[op] = even[op] > 0 ? static_cast<float>(mean / static_cast<double>(even[op])) : 1.0F;
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
