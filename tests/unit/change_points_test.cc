#include "base/change_points.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>

using namespace stageline;

namespace {

// Draws nearly normal numbers, the same on every machine.
class Noise {
 public:
  explicit Noise(uint64_t seed) : random_(seed) {}
  double next() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random_() >> 11) / 9007199254740992.0;
    return sum;
  }

 private:
  std::mt19937_64 random_;
};

// Mean steps of 60 runs of 20 steps each, whose steps differ by 1 %.
std::vector<double> history(Noise& noise, size_t shifted_from, double shift) {
  std::vector<double> runs;
  for (size_t run = 0; run < 60; ++run) {
    double sum = 0;
    for (int step = 0; step < 20; ++step)
      sum += 100e6 * (run >= shifted_from ? 1 + shift : 1) * (1 + 0.01 * noise.next());
    runs.push_back(sum / 20);
  }
  return runs;
}

// The share of the variance that the best split explains: it grows with the greatest |t|, the best there is against
// normal noise.
double max_explained(const std::vector<double>& runs) {
  double mean = 0, left = 0, all = 0, max = 0;
  const auto n = static_cast<double>(runs.size());
  for (const double run : runs) mean += run / n;
  for (const double run : runs) all += (run - mean) * (run - mean);
  for (size_t k = 1; k < runs.size(); ++k) {
    left += runs[k - 1] - mean;
    if (k >= 4 && runs.size() - k >= 4)
      max = std::max(max, left * left * n / (static_cast<double>(k) * (n - static_cast<double>(k))) / all);
  }
  return max;
}

}  // namespace

TEST_CASE("histories without a change are cut at most once in a hundred") {
  Noise noise(1);
  int cut = 0;
  for (int i = 0; i < 600; ++i) cut += !change_points(history(noise, 60, 0)).empty();
  CHECK(cut <= 6);
}

TEST_CASE("half a percent among 60 runs whose steps differ by one is found, near where it is") {
  Noise noise(2);
  for (int i = 0; i < 60; ++i) {
    const std::vector<ChangePoint> found = change_points(history(noise, 40, 0.005));
    REQUIRE(found.size() >= 1);
    bool near = false;
    for (const ChangePoint& p : found) near |= p.at >= 36 && p.at <= 44 && p.after > 1.003 * p.before;
    CHECK(near);
  }
}

TEST_CASE(
    "shifts of one standard deviation of the runs are found nearly as often as by the best test of as many false "
    "alarms") {
  Noise noise(3);
  const auto runs_of = [&](size_t from, double shift) {
    std::vector<double> runs;
    for (size_t run = 0; run < 60; ++run) runs.push_back(100 + noise.next() + (run >= from ? shift : 0));
    return runs;
  };
  std::vector<double> level;
  for (int i = 0; i < 4000; ++i) level.push_back(max_explained(runs_of(60, 0)));
  std::sort(level.begin(), level.end());
  const double bar = level[level.size() - level.size() / 200];  // one in two hundred, as change_points()
  int ours = 0, best = 0;
  for (int i = 0; i < 150; ++i) {
    const std::vector<double> runs = runs_of(30, 1);
    ours += !change_points(runs).empty();
    best += max_explained(runs) > bar;
  }
  CHECK(best > 50);
  CHECK(ours >= 0.8 * best);
}

TEST_CASE("two changes are two, and short or level histories none") {
  std::vector<double> runs;
  for (int i = 0; i < 30; ++i) runs.push_back((i < 10 ? 100 : i < 20 ? 120 : 90) + i % 3);
  const std::vector<ChangePoint> found = change_points(runs);
  REQUIRE(found.size() == 2);
  CHECK(found[0].at == 10);
  CHECK(found[1].at == 20);
  CHECK(found[0].before == 101);
  CHECK(found[1].after == 91);
  CHECK(change_points({}).empty());
  CHECK(change_points({1, 2, 3, 4, 5, 6, 7}).empty());
  CHECK(change_points(std::vector<double>(50, 7.0)).empty());
}
