// Measures the alignment of the clocks of a large run, alone: cells are in memory, as after reading.
//
//   stageline_align_bench RANKS MESSAGES_PER_RANK [REPEATS]
//
// Ranks form one pipeline; every rank sends and receives, forward and backward, and its clock is off by up to 50 ms and
// 20 ppm. Prints one JSON object: the median time of align_clocks (matching included), its CPU, and the largest error.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "base/parallel.h"
#include "pipeline/clocks/align.h"

namespace {

using namespace stageline;

struct Random {
  uint64_t state = 1;
  double uniform() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
  }
};

struct Clock {
  double offset_ns, drift;
};

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? atoi(argv[1]) : 128, per_rank = argc > 2 ? atoi(argv[2]) : 100'000;
  const int repeats = argc > 3 ? atoi(argv[3]) : 5;
  constexpr int kMicroBatches = 25;
  constexpr double kSlotNs = 2e6;
  const int steps = std::max(1, per_rank / (4 * kMicroBatches));  // a send and a receive each way
  Random random;
  Trace trace;
  trace.clock = ClockState::kUnaligned;
  std::vector<Clock> clocks;
  for (int r = 0; r < ranks; ++r) {
    Part part;
    part.rank = part.stage = r;
    part.dp = 0;
    trace.parts.push_back(std::move(part));
    clocks.push_back({(random.uniform() * 2 - 1) * 5e7, (random.uniform() * 2 - 1) * 2e-5});
  }
  const double middle = steps * kMicroBatches * kSlotNs / 2;
  std::vector<double> takes(static_cast<size_t>(kMicroBatches) * 2 * static_cast<size_t>(ranks));
  trace.cells.reserve(static_cast<size_t>(ranks) * static_cast<size_t>(steps) * kMicroBatches * 4);
  for (int step = 0; step < steps; ++step) {
    for (double& t : takes) t = 2e4 + 1e5 * random.uniform();
    for (int r = 0; r < ranks; ++r)
      for (int m = 0; m < kMicroBatches; ++m) {
        const double at = (static_cast<double>(step) * kMicroBatches + m) * kSlotNs;
        const auto add = [&](CellKind kind, double start, double end) {
          const Clock& c = clocks[r];
          const auto local = [&](double t) { return std::llround(t + c.offset_ns + c.drift * (t - middle)); };
          trace.cells.add({step, r, kind, kUnknown, kUnknown, local(start), local(end), kNoSlice});
        };
        const auto took = [&](int from, int way) {
          return takes[(static_cast<size_t>(from) * kMicroBatches + static_cast<size_t>(m)) * 2 +
                       static_cast<size_t>(way)];
        };
        if (r + 1 < ranks) add(CellKind::kSendForward, at, at + took(r, 0) - 2e4 * random.uniform());
        if (r > 0) add(CellKind::kRecvForward, at - 1e5, at + took(r - 1, 0));
        if (r > 0) add(CellKind::kSendBackward, at + 1e6, at + 1e6 + took(r, 1) - 2e4 * random.uniform());
        if (r + 1 < ranks) add(CellKind::kRecvBackward, at + 9e5, at + 1e6 + took(r + 1, 1));
      }
  }
  trace.cells.sort();
  std::vector<double> seconds;
  ClockAlignment found;
  const clock_t cpu = clock();
  for (int k = 0; k < repeats; ++k) {
    const auto begin = std::chrono::steady_clock::now();
    found = align_clocks(trace);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  const double cpu_s = static_cast<double>(clock() - cpu) / CLOCKS_PER_SEC / repeats;
  double worst = 0;
  for (int r = 1; r < ranks; ++r)
    worst = std::max(worst, std::abs(static_cast<double>(found.clocks[r].segments[0].offset_ns) -
                                     (clocks[r].offset_ns - clocks[0].offset_ns)));
  printf(
      "{\"ranks\": %d, \"cells\": %zu, \"matches\": %lld, \"threads\": %d, \"seconds\": %.3f, \"cpu\": %.3f, "
      "\"worst_error_us\": "
      "%.1f}\n",
      ranks, trace.cells.size(), static_cast<long long>(found.match_count), thread_count(), seconds[seconds.size() / 2],
      cpu_s, worst / 1e3);
  return 0;
}
