// Measures how often `stageline history check` finds a shift among runs that differ, and how often any test can.
//
//   stageline_history_bench [HISTORIES] [ONLY]     JSON: a row a case; HISTORIES simulated ones of each, 2 000 by
//   default
//
// A history is 60 mean steps that differ by chance (normally), and from one run on all are longer. Only the ratio of
// the shift to the runs' standard deviation matters, so rows are by ratio. Three tests look at the same histories:
//
//   ours    change_points() as `history check` asks it: found where the last change is one to longer steps
//   best    the likelihood ratio of a shift at any place against none, place and noise unknown: the greatest |t| over
//   all places. It is
//           cut where it cuts as many level histories as ours may (kLevel), by 20 000 of them
//   limit   place and noise known: no test of this level finds more (Neyman and Pearson)
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/change_points.h"

namespace {

constexpr size_t kRuns = 60, kLeast = 4;
constexpr double kLevel = 0.005, kPi = 3.14159265358979323846;

class Noise {
 public:
  explicit Noise(uint64_t seed) : random_(seed) {}
  double next() {
    const double a = uniform(), b = uniform();
    return std::sqrt(-2 * std::log(a)) * std::cos(2 * kPi * b);
  }

 private:
  double uniform() { return (static_cast<double>(random_() >> 11) + 0.5) / 9007199254740992.0; }
  std::mt19937_64 random_;
};

// `shift` in standard deviations of the runs, which is 1 % here.
std::vector<double> history(Noise& noise, double shift, size_t from) {
  std::vector<double> runs;
  for (size_t run = 0; run < kRuns; ++run) runs.push_back(100e6 + 1e6 * ((run >= from ? shift : 0) + noise.next()));
  return runs;
}

// Grows with the greatest |t|: the share of the runs' variance that a split explains.
double max_explained(const std::vector<double>& runs) {
  double mean = 0, left = 0, all = 0, max = 0;
  for (const double run : runs) mean += run / static_cast<double>(kRuns);
  for (const double run : runs) all += (run - mean) * (run - mean);
  for (size_t k = 1; k < kRuns; ++k) {
    left += runs[k - 1] - mean;
    if (k < kLeast || kRuns - k < kLeast) continue;
    const auto m = static_cast<double>(k), n = static_cast<double>(kRuns - k);
    max = std::max(max, left * left * (m + n) / (m * n) / all);
  }
  return max;
}

double normal(double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }

double quantile(double p) {  // of the normal distribution
  double low = -10, high = 10;
  for (int i = 0; i < 100; ++i) (normal((low + high) / 2) < p ? low : high) = (low + high) / 2;
  return low;
}

double limit(double shift, size_t from) {
  const auto m = static_cast<double>(from), n = static_cast<double>(kRuns - from);
  return normal(shift / std::sqrt(1 / m + 1 / n) - quantile(1 - kLevel / 2));
}

bool finds_longer(const std::vector<double>& runs) {
  const std::vector<stageline::ChangePoint> found = stageline::change_points(runs);
  return !found.empty() && found.back().after > found.back().before;
}

}  // namespace

int main(int argc, char** argv) {
  const int histories = argc > 1 ? std::atoi(argv[1]) : 2'000;
  std::vector<double> level;
  Noise quiet(1);
  for (int i = 0; i < 10 * histories; ++i) level.push_back(max_explained(history(quiet, 0, kRuns)));
  std::sort(level.begin(), level.end());
  const double bar = level[static_cast<size_t>(static_cast<double>(level.size()) * (1 - kLevel))];

  // This measures a check after each run, 53 checks per history; that takes long, so it uses fewer histories.
  const int checked = std::max(1, histories / 10);
  int cut = 0, ever = 0;
  Noise noise(2);
  for (int i = 0; i < histories; ++i) {
    const std::vector<double> runs = history(noise, 0, kRuns);
    cut += !stageline::change_points(runs).empty();
    bool said = false;
    for (size_t n = 2 * kLeast; n <= kRuns && i < checked && !said; ++n)
      said = finds_longer({runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(n)});
    ever += said;
  }
  const auto share = [](int count, int of) { return static_cast<double>(count) / of; };
  std::printf("{\"histories\": %d, \"false_alarms\": %.4f, \"checked\": %d, \"ever\": %.4f, \"rows\": [", histories,
              share(cut, histories), checked, share(ever, checked));
  const char* comma = "";
  for (const double shift : {0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0})
    for (const size_t from : {size_t{30}, size_t{50}}) {
      int ours = 0, best = 0;
      for (int i = 0; i < histories; ++i) {
        const std::vector<double> runs = history(noise, shift, from);
        ours += finds_longer(runs);
        best += max_explained(runs) > bar;
      }
      std::printf("%s{\"shift\": %.2f, \"from\": %zu, \"ours\": %.4f, \"best\": %.4f, \"limit\": %.4f}", comma, shift,
                  from, share(ours, histories), share(best, histories), limit(shift, from));
      comma = ", ";
    }
  std::printf("]}\n");
}
