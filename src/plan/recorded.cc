#include "plan/recorded.h"

#include <algorithm>
#include <cmath>

namespace stageline::plan {
namespace {

using Rows = std::vector<std::vector<double>>;

// Solves the normal equations of rows · x = wanted; empty where columns cannot be told apart.
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

}  // namespace

RecordedTimes times_of_run(const RecordedRun& run, const std::vector<uint8_t>& kind_of, size_t kinds) {
  RecordedTimes out;
  const size_t stages = run.layers.size();
  Rows counts(stages, std::vector<double>(kinds, 0));
  for (size_t s = 0, layer = 0; s < stages; ++s)
    for (int32_t i = 0; i < run.layers[s]; ++i) counts[s][kind_of[layer++]] += 1;
  out.times.kinds.assign(kinds, {});
  // Stages that hold neither embedding nor head; with two stages, both.
  const size_t first = stages > 2 ? 1 : 0, end = stages > 2 ? stages - 1 : stages;
  for (size_t d = 0; d < kDirections; ++d) {
    std::vector<double> price;
    Rows rows(counts.begin() + static_cast<int64_t>(first), counts.begin() + static_cast<int64_t>(end));
    std::vector<double> wanted;
    for (size_t s = first; s < end; ++s) wanted.push_back(run.stages.cost_ns[s][d]);
    if (stages > 2 && kinds > 1) price = least_squares(rows, wanted, kinds);
    if (price.empty() || std::ranges::any_of(price, [](double x) { return x < 0; })) {
      if (kinds > 1) out.kinds_told_apart = false;
      double sum = 0, layers = 0, cheapest = 1e300;
      for (size_t s = first; s < end; ++s) {
        if (run.layers[s] == 0) continue;
        sum += run.stages.cost_ns[s][d], layers += run.layers[s];
        cheapest = std::min(cheapest, run.stages.cost_ns[s][d] / run.layers[s]);
      }
      price.assign(kinds, layers == 0 ? 0 : stages > 2 ? sum / layers : cheapest);
    }
    const auto fit = [&](size_t s) {
      double ns = 0;
      for (size_t k = 0; k < kinds; ++k) ns += counts[s][k] * price[k];
      return ns;
    };
    const auto into = [&](LayerTime& time) -> int64_t& {
      return d == 0 ? time.forward : d == 1 ? time.input : time.weight;
    };
    for (size_t k = 0; k < kinds; ++k) into(out.times.kinds[k]) = std::llround(price[k]);
    if (stages > 1) {
      into(out.times.embedding) = std::llround(std::max(0.0, run.stages.cost_ns[0][d] - fit(0)));
      into(out.times.head) = std::llround(std::max(0.0, run.stages.cost_ns[stages - 1][d] - fit(stages - 1)));
    }
    for (size_t s = first; s < end && stages > 2; ++s)
      if (run.stages.cost_ns[s][d] > 0)
        out.residual = std::max(out.residual, std::abs(fit(s) / run.stages.cost_ns[s][d] - 1));
  }
  const auto whole = [](const DirectionCost& cost) { return cost[2] <= 0; };
  if (std::ranges::all_of(run.stages.cost_ns, whole)) {
    const auto divide = [&](LayerTime& t) {
      t.weight = std::llround(static_cast<double>(t.input) * run.weight_share);
      t.input -= t.weight;
    };
    for (LayerTime& kind : out.times.kinds) divide(kind);
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

}  // namespace stageline::plan
