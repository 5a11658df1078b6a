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

}  // namespace

RecordedTimes times_of_run(const RecordedRun& run, const std::vector<uint8_t>& kind_of, size_t kinds) {
  RecordedTimes out;
  const size_t stages = run.layers.size();
  Rows counts(stages, std::vector<double>(kinds, 0));
  for (size_t s = 0, layer = 0; s < stages; ++s)
    for (int32_t i = 0; i < run.layers[s]; ++i) counts[s][kind_of[layer++]] += 1;
  const auto cost = [&](size_t s, size_t d) {
    const DirectionCost& ns = run.stages.cost_ns[s];
    return d < kDirections ? ns[d] : ns[0] + ns[1] + ns[2];
  };
  // The prices of the kinds in one direction, or in all together, from these stages; `distinct`: whether each kind has
  // a price of its own.
  bool distinct = true;
  const auto prices = [&](const std::vector<size_t>& from, size_t d) {
    Rows rows;
    std::vector<double> wanted, price;
    double sum = 0, layers = 0, cheapest = std::numeric_limits<double>::infinity();
    for (const size_t s : from) {
      rows.push_back(counts[s]), wanted.push_back(cost(s, d));
      if (run.layers[s] == 0) continue;
      sum += cost(s, d), layers += run.layers[s];
      cheapest = std::min(cheapest, cost(s, d) / run.layers[s]);
    }
    if (stages > 2 && kinds > 1) price = least_squares(rows, wanted, kinds);
    distinct = kinds == 1 || (!price.empty() && std::ranges::all_of(price, [](double x) { return x >= 0; }));
    if (kinds == 1 || !distinct) price.assign(kinds, layers == 0 ? 0 : stages > 2 ? sum / layers : cheapest);
    return price;
  };
  const auto fit = [&](const std::vector<double>& price, size_t s) {
    double ns = 0;
    for (size_t k = 0; k < kinds; ++k) ns += counts[s][k] * price[k];
    return ns;
  };
  // Stages that hold neither embedding nor head; with two stages, both. The slowest leaves as long as it is slow.
  std::vector<size_t> rows;
  for (size_t s = stages > 2 ? 1 : 0; s < (stages > 2 ? stages - 1 : stages); ++s) rows.push_back(s);
  std::vector<double> whole = prices(rows, kDirections);
  while (stages > 2 && rows.size() > kinds && distinct) {
    const auto excess = [&](size_t s) { return cost(s, kDirections) / std::max(1.0, fit(whole, s)); };
    const auto worst = std::ranges::max_element(rows, {}, excess);
    // If one of two is above the other by x, it is above their mean by x ÷ 2.
    if (excess(*worst) <= 1 + kSlow / 2) break;
    std::vector<size_t> others = rows;
    std::erase(others, *worst);
    const std::vector<double> next = prices(others, kDirections);
    if (distinct) rows = others, whole = next;
  }
  // No layer costs more than one of the ends, which have embedding or head besides.
  for (const size_t end : {size_t{0}, stages - 1})
    if (stages > 2 && kinds == 1 && cost(end, kDirections) * (1 + kSlow) < fit(whole, end))
      rows = {end}, whole = prices(rows, kDirections);
  out.times.kinds.assign(kinds, {});
  for (size_t d = 0; d < kDirections; ++d) {
    const std::vector<double> price = prices(rows, d);
    out.kinds_distinct &= distinct;
    for (size_t k = 0; k < kinds; ++k) part_of(out.times.kinds[k], d) = std::llround(price[k]);
    if (stages > 1) {
      part_of(out.times.embedding, d) = std::llround(std::max(0.0, cost(0, d) - fit(price, 0)));
      part_of(out.times.head, d) = std::llround(std::max(0.0, cost(stages - 1, d) - fit(price, stages - 1)));
    }
    for (const size_t s : rows)
      if (stages > 2 && cost(s, d) > 0) out.residual = std::max(out.residual, std::abs(fit(price, s) / cost(s, d) - 1));
  }
  for (size_t s = 1; s + 1 < stages; ++s) {
    const double more = cost(s, kDirections) / std::max(1.0, fit(whole, s)) - 1;
    const int32_t rank = run.stages.owner[s];
    const auto known = std::ranges::find(out.slow, rank, &std::pair<int32_t, double>::first);
    if (more <= kSlow || std::ranges::count(rows, s)) continue;
    known == out.slow.end() ? out.slow.emplace_back(rank, more) : * known = {rank, std::max(known->second, more)};
  }
  out.stages.assign(stages, {});
  for (size_t s = 0; s < stages; ++s)
    for (size_t d = 0; d < kDirections; ++d) part_of(out.stages[s], d) = std::llround(cost(s, d));
  if (std::ranges::all_of(run.stages.cost_ns, [](const DirectionCost& ns) { return ns[2] <= 0; })) {
    const auto divide = [&](LayerTime& t) {
      t.weight = std::llround(static_cast<double>(t.input) * run.weight_share);
      t.input -= t.weight;
    };
    for (auto* list : {&out.times.kinds, &out.stages})
      for (LayerTime& time : *list) divide(time);
    divide(out.times.embedding), divide(out.times.head);
  }
  double sum = 0;
  for (size_t s = 0; s < run.there.size(); ++s) {
    out.times.there.push_back(std::llround(run.there[s]));
    out.times.back.push_back(std::llround(run.back[s]));
    sum += run.there[s] + run.back[s];
  }
  if (!run.there.empty()) out.times.latency = std::llround(sum / static_cast<double>(2 * run.there.size()));
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
