#include "diagnosis/causes/cell_times.h"

namespace stageline {
namespace {

struct Level {
  double value = 1, variance = 0;  // value: relative to the mean of all; variance: that of chance
  bool known = false;
};

// Draws levels towards 1 as far as chance explains their scatter; returns for each what it becomes ÷ what it is.
std::vector<double> drawn_together(const std::vector<Level>& levels) {
  double squares = 0, chance = 0, count = 0;
  for (const Level& level : levels)
    if (level.known) squares += (level.value - 1) * (level.value - 1), chance += level.variance, ++count;
  std::vector<double> out(levels.size(), 1.0);
  if (count < 2) return out;
  const double real = std::max(0.0, squares / (count - 1) - chance / count);
  for (size_t i = 0; i < levels.size(); ++i) {
    const Level& level = levels[i];
    if (!level.known || !(level.value > 0)) continue;
    const double kept = real > 0 ? real / (real + level.variance) : 0;
    out[i] = (1 + kept * (level.value - 1)) / level.value;
  }
  return out;
}

}  // namespace

std::vector<std::vector<double>> even_levels(const std::vector<std::vector<WorkLevel>>& work, double deviation,
                                             bool shared) {
  const double variance = deviation * deviation;
  const size_t places = work.size(), replicas = work.empty() ? 0 : work.front().size();
  std::vector<double> of_place(places), place_count(places), of_replica(replicas), replica_count(replicas);
  double all = 0, known_places = 0;
  for (size_t v = 0; v < places; ++v) {
    for (const WorkLevel& one : work[v]) of_place[v] += one.mean * one.count, place_count[v] += one.count;
    if (!(place_count[v] > 0)) continue;
    of_place[v] /= place_count[v];
    if (shared) place_count[v] /= std::max<size_t>(replicas, 1);
    all += of_place[v], ++known_places;
  }
  if (!(all > 0)) return std::vector(places, std::vector<double>(replicas, 1.0));
  all /= known_places;
  std::vector<Level> levels(places);
  for (size_t v = 0; v < places; ++v)
    if (place_count[v] > 0) levels[v] = {of_place[v] / all, variance / place_count[v], true};
  const std::vector<double> place_becomes = drawn_together(levels);
  levels.assign(replicas, {});
  for (size_t d = 0; d < replicas; ++d) {
    double sum = 0, count = 0, places_of = 0;
    for (size_t v = 0; v < places; ++v)
      if (work[v][d].count > 0) sum += work[v][d].mean / of_place[v], count += work[v][d].count, ++places_of;
    if (places_of > 0) levels[d] = {sum / places_of, shared ? 0 : variance / count, true};
  }
  const std::vector<Level> replica_levels = levels;
  const std::vector<double> replica_becomes = drawn_together(levels);
  levels.assign(places * replicas, {});
  for (size_t v = 0; v < places; ++v)
    for (size_t d = 0; d < replicas; ++d)
      if (const WorkLevel& one = work[v][d]; one.count > 0 && replica_levels[d].value > 0)
        levels[v * replicas + d] = {one.mean / of_place[v] / replica_levels[d].value, shared ? 0 : variance / one.count,
                                    true};
  const std::vector<double> rest_becomes = drawn_together(levels);
  std::vector<std::vector<double>> out(places, std::vector<double>(replicas, 1.0));
  for (size_t v = 0; v < places; ++v)
    for (size_t d = 0; d < replicas; ++d)
      out[v][d] = place_becomes[v] * replica_becomes[d] * rest_becomes[v * replicas + d];
  return out;
}

Largest largest_of_normals(size_t count) {
  if (count < 2) return {};
  // Integrates ∫ x n φ(x) Φ(x)^(n−1) dx in steps that leave an error below 1e-6.
  constexpr double kStep = 0.005, kEnd = 9;
  const double n = count;
  double mean = 0, square = 0;
  for (double x = -kEnd; x <= kEnd; x += kStep) {
    const double below = 0.5 * std::erfc(-x / std::sqrt(2.0));
    const double density = n * std::exp(-x * x / 2) / std::sqrt(2 * M_PI) * std::pow(below, n - 1) * kStep;
    mean += x * density, square += x * x * density;
  }
  return {mean, std::sqrt(square - mean * mean)};
}

}  // namespace stageline
