#include "plan/recorded.h"

#include <random>

namespace stageline::plan {
namespace {

using Rows = std::vector<std::vector<double>>;

// Solves the normal equations of rows · x = wanted; empty where columns depend on each other.
std::vector<double> least_squares(const Rows& rows, const std::vector<double>& wanted, size_t columns) {
  Rows a(columns, std::vector<double>(columns + 1, 0));
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t i = 0; i < columns; ++i) {
      for (size_t j = 0; j < columns; ++j) a[i][j] += rows[r][i] * rows[r][j];
      a[i][columns] += rows[r][i] * wanted[r];
    }
  for (size_t i = 0; i < columns; ++i) {
    size_t best = i;
    for (size_t r = i + 1; r < columns; ++r)
      if (std::abs(a[r][i]) > std::abs(a[best][i])) best = r;
    std::swap(a[i], a[best]);
    if (std::abs(a[i][i]) < 1e-6) return {};
    for (size_t r = 0; r < columns; ++r) {
      if (r == i) continue;
      const double factor = a[r][i] / a[i][i];
      for (size_t c = i; c <= columns; ++c) a[r][c] -= factor * a[i][c];
    }
  }
  std::vector<double> x(columns);
  for (size_t i = 0; i < columns; ++i) x[i] = a[i][columns] / a[i][i];
  return x;
}

// A stage whose layers take longer than elsewhere by this share has a slow rank.
constexpr double kSlow = 0.1;

int64_t& part_of(LayerTime& time, size_t direction) {
  return direction == 0 ? time.forward : direction == 1 ? time.input : time.weight;
}

// A layer of each kind costs this, in one direction or (kDirections) in all together.
struct Prices {
  std::vector<double> of_kind;
  bool distinct = true;  // each kind has a price of its own; otherwise all have the mean
};

// Finds prices of layers from the times of the stages that hold them.
class StageTimes {
 public:
  StageTimes(const RecordedRun& run, const std::vector<uint8_t>& kind_of, size_t kinds)
      : run_(run), kinds_(kinds), counts_(run.layers.size(), std::vector<double>(kinds, 0)) {
    for (size_t s = 0, layer = 0; s < counts_.size(); ++s)
      for (int32_t i = 0; i < run.layers[s]; ++i) counts_[s][kind_of[layer++]] += 1;
  }

  double cost(size_t s, size_t d) const {
    const DirectionCost& ns = run_.stages.cost_ns[s];
    return d < kDirections ? ns[d] : ns[0] + ns[1] + ns[2];
  }

  Prices prices(const std::vector<size_t>& from, size_t d) const {
    Rows rows;
    std::vector<double> wanted;
    double sum = 0, layers = 0, cheapest = std::numeric_limits<double>::infinity();
    for (const size_t s : from) {
      rows.push_back(counts_[s]), wanted.push_back(cost(s, d));
      if (run_.layers[s] == 0) continue;
      sum += cost(s, d), layers += run_.layers[s];
      cheapest = std::min(cheapest, cost(s, d) / run_.layers[s]);
    }
    const bool has_middle = counts_.size() > 2;
    Prices out;
    if (has_middle && kinds_ > 1) out.of_kind = least_squares(rows, wanted, kinds_);
    out.distinct =
        kinds_ == 1 || (!out.of_kind.empty() && std::ranges::all_of(out.of_kind, [](double x) { return x >= 0; }));
    if (kinds_ == 1 || !out.distinct)
      out.of_kind.assign(kinds_, layers == 0 ? 0 : has_middle ? sum / layers : cheapest);
    return out;
  }

  // Returns the cost of the layers of a stage at these prices.
  double at(const Prices& prices, size_t s) const {
    double ns = 0;
    for (size_t k = 0; k < kinds_; ++k) ns += counts_[s][k] * prices.of_kind[k];
    return ns;
  }

  // Returns how many times as long as at these prices a stage takes, in all directions together.
  double excess(const Prices& prices, size_t s) const { return cost(s, kDirections) / std::max(1.0, at(prices, s)); }

  // The stages that show what layers cost: neither embedding nor head is on them (with two stages, both are), and no
  // slow rank. The slowest leaves as long as it is slow. `whole` becomes their prices.
  std::vector<size_t> usual_stages(Prices& whole) const {
    const size_t stages = counts_.size(), outside = stages > 2 ? 1 : 0;
    auto usual = indexes(stages - 2 * outside, outside);
    whole = prices(usual, kDirections);
    while (stages > 2 && usual.size() > kinds_ && whole.distinct) {
      const auto worst = std::ranges::max_element(usual, {}, [&](size_t s) { return excess(whole, s); });
      // If one of two is above the other by x, it is above their mean by x ÷ 2.
      if (excess(whole, *worst) <= 1 + kSlow / 2) break;
      std::vector<size_t> others = usual;
      std::erase(others, *worst);
      Prices next = prices(others, kDirections);
      if (!next.distinct) break;
      usual = std::move(others), whole = std::move(next);
    }
    // No layer costs more than one of the ends, which have embedding or head besides.
    for (const size_t end : {size_t{0}, stages - 1})
      if (stages > 2 && kinds_ == 1 && cost(end, kDirections) * (1 + kSlow) < at(whole, end))
        usual = {end}, whole = prices(usual, kDirections);
    return usual;
  }

 private:
  const RecordedRun& run_;
  size_t kinds_;
  Rows counts_;  // for each stage, its layers of each kind
};

// Takes layers by kind, embedding and head, in each direction.
void take_layers(const StageTimes& times, const std::vector<size_t>& usual, size_t stages, size_t kinds,
                 RecordedTimes& out) {
  out.times.kinds.assign(kinds, {});
  for (size_t d = 0; d < kDirections; ++d) {
    const Prices prices = times.prices(usual, d);
    out.kinds_distinct &= prices.distinct;
    for (size_t k = 0; k < kinds; ++k) part_of(out.times.kinds[k], d) = std::llround(prices.of_kind[k]);
    const auto beyond = [&](size_t s) { return std::llround(std::max(0.0, times.cost(s, d) - times.at(prices, s))); };
    if (stages > 1) part_of(out.times.embedding, d) = beyond(0), part_of(out.times.head, d) = beyond(stages - 1);
    for (const size_t s : usual)
      if (const double cost = times.cost(s, d); stages > 2 && cost > 0)
        out.residual = std::max(out.residual, std::abs(times.at(prices, s) / cost - 1));
  }
}

// A run that does not record weight gradients apart has them in the backward: its share of them is known.
void divide_backward(double weight_share, RecordedTimes& out) {
  const auto divide = [&](LayerTime& t) {
    t.weight = std::llround(static_cast<double>(t.input) * weight_share);
    t.input -= t.weight;
  };
  std::ranges::for_each(out.times.kinds, divide);
  std::ranges::for_each(out.stages, divide);
  divide(out.times.embedding), divide(out.times.head);
}

void take_messages(const RecordedRun& run, Times& times) {
  double sum = 0;
  for (size_t s = 0; s < run.there.size(); ++s) {
    times.there.push_back(std::llround(run.there[s]));
    times.back.push_back(std::llround(run.back[s]));
    sum += run.there[s] + run.back[s];
  }
  if (!run.there.empty()) times.latency = std::llround(sum / static_cast<double>(2 * run.there.size()));
}

}  // namespace

RecordedTimes times_of_run(const RecordedRun& run, const std::vector<uint8_t>& kind_of, size_t kinds) {
  const size_t stages = run.layers.size();
  const StageTimes times(run, kind_of, kinds);
  Prices whole;
  const std::vector<size_t> usual = times.usual_stages(whole);
  RecordedTimes out;
  take_layers(times, usual, stages, kinds, out);
  for (size_t s = 1; s + 1 < stages; ++s) {
    const double more = times.excess(whole, s) - 1;
    if (more <= kSlow || std::ranges::count(usual, s)) continue;
    const int32_t rank = run.stages.owner[s];
    const auto known = std::ranges::find(out.slow, rank, &std::pair<int32_t, double>::first);
    if (known == out.slow.end()) out.slow.emplace_back(rank, more);
    else known->second = std::max(known->second, more);
  }
  out.stages.assign(stages, {});
  for (size_t s = 0; s < stages; ++s)
    for (size_t d = 0; d < kDirections; ++d) part_of(out.stages[s], d) = std::llround(times.cost(s, d));
  if (std::ranges::all_of(run.stages.cost_ns, [](const DirectionCost& ns) { return ns[2] <= 0; }))
    divide_backward(run.weight_share, out);
  take_messages(run, out.times);
  out.times.overlap = run.overlap;
  return out;
}

std::vector<Times> resampled_times(const RecordedRun& run, const std::vector<uint8_t>& kind_of, size_t kinds,
                                   size_t count) {
  std::vector<Times> out;
  std::mt19937_64 random(1);
  const size_t steps = run.steps.size();
  for (size_t n = 0; steps > 1 && n < count; ++n) {
    RecordedRun other = run;
    for (DirectionCost& ns : other.stages.cost_ns) ns = {};
    for (size_t i = 0; i < steps; ++i) {
      const std::vector<DirectionCost>& drawn = run.steps[random() % steps];
      for (size_t s = 0; s < drawn.size(); ++s)
        for (size_t d = 0; d < kDirections; ++d) other.stages.cost_ns[s][d] += drawn[s][d] / static_cast<double>(steps);
    }
    out.push_back(times_of_run(other, kind_of, kinds).times);
  }
  return out;
}

}  // namespace stageline::plan
