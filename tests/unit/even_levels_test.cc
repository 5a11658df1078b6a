#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "diagnosis/causes/cell_times.h"

using namespace stageline;

namespace {

// Means of `count` micro-batches each, whose work scatters by `deviation` around what `level` says of place and
// replica.
std::vector<std::vector<WorkLevel>> drawn(size_t places, size_t replicas, int count, double deviation, uint32_t seed,
                                          double (*level)(size_t place, size_t replica)) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<std::vector<WorkLevel>> work(places, std::vector<WorkLevel>(replicas));
  for (size_t v = 0; v < places; ++v)
    for (size_t d = 0; d < replicas; ++d) {
      for (int i = 0; i < count; ++i) work[v][d].mean += level(v, d) * (1 + deviation * normal(random)) / count;
      work[v][d].count = count;
    }
  return work;
}

}  // namespace

TEST_CASE("even levels: what differs by chance becomes alike, by less than half of what it differed by") {
  double before = 0, after = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const auto work = drawn(4, 2, 50, 0.3, seed, [](size_t, size_t) { return 10.0; });
    const auto becomes = even_levels(work, 0.3, false);
    for (size_t v = 0; v < 4; ++v)
      for (size_t d = 0; d < 2; ++d) {
        before += std::abs(work[v][d].mean / 10 - 1);
        after += std::abs(work[v][d].mean * becomes[v][d] / 10 - 1);
      }
  }
  CHECK(after < before / 2);
}

TEST_CASE("even levels: a stage with more layers, a slow replica and a slow rank keep what they take") {
  const auto level = [](size_t place, size_t replica) {
    return (place == 3 ? 13.0 : 10.0) * (replica == 2 ? 1.4 : 1.0) * (place == 1 && replica == 0 ? 1.5 : 1.0);
  };
  const auto work = drawn(4, 3, 200, 0.2, 7, level);
  const auto becomes = even_levels(work, 0.2, false);
  for (size_t v = 0; v < 4; ++v)
    for (size_t d = 0; d < 3; ++d) CHECK(work[v][d].mean * becomes[v][d] == doctest::Approx(level(v, d)).epsilon(0.03));
}

TEST_CASE("even levels: replicas that have the same work at once say no more of it than one") {
  auto work = drawn(6, 1, 30, 0.3, 3, [](size_t, size_t) { return 10.0; });
  for (auto& place : work) place.resize(8, place.front());
  double apart = 0, at_once = 0;
  const auto separate = even_levels(work, 0.3, false), shared = even_levels(work, 0.3, true);
  for (size_t v = 0; v < 6; ++v)
    apart += std::abs(work[v][0].mean * separate[v][0] - 10), at_once += std::abs(work[v][0].mean * shared[v][0] - 10);
  CHECK(at_once < apart);
}

TEST_CASE("even levels: of nothing, of one place, of places without work") {
  CHECK(even_levels({}, 0.3, false).empty());
  CHECK(even_levels({{{10, 5}}}, 0.3, false)[0][0] == 1);
  const auto becomes = even_levels({{{10, 5}, {}}, {{}, {}}}, 0.3, false);
  for (const auto& place : becomes)
    for (const double one : place) CHECK(one == 1);
}

TEST_CASE("the largest of several normal values") {
  CHECK(largest_of_normals(1).mean == 0);
  CHECK(largest_of_normals(2).mean == doctest::Approx(1 / std::sqrt(M_PI)).epsilon(1e-4));
  CHECK(largest_of_normals(2).deviation == doctest::Approx(std::sqrt(1 - 1 / M_PI)).epsilon(1e-4));
  CHECK(largest_of_normals(10).mean == doctest::Approx(1.53875).epsilon(1e-4));
}
