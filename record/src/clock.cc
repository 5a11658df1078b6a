#include "clock.h"

#include <stdlib.h>
#include <string.h>

#include "own_file.h"

namespace slr {

bool counter_is_clock = false;

namespace {

// Returns true if the first 16 KiB of the file contain the word.
[[maybe_unused]] bool file_says(const char* path, const char* word) {
  char text[16385];
  const ssize_t size = read_start(path, text, sizeof text - 1);
  if (size < 0) return false;
  text[size] = '\0';
  return strstr(text, word) != nullptr;
}

}  // namespace

ClockKind choose_clock() {
  const char* wish = getenv("STAGELINE_CLOCK");
  counter_is_clock = false;
  if (wish && strcmp(wish, "raw") == 0) return kClockMonotonicRaw;
#if defined(__x86_64__)
  counter_is_clock = file_says("/proc/cpuinfo", "constant_tsc") && file_says("/proc/cpuinfo", "nonstop_tsc") &&
                     file_says("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc");
  if (counter_is_clock) return kClockTsc;
#elif defined(__aarch64__)
  counter_is_clock = true;  // the architecture promises it constant
  return kClockCntvct;
#endif
  return kClockMonotonicRaw;
}

Snapshot take_snapshot() {
  Snapshot best{};
  for (int i = 0; i < 5; ++i) {
    Snapshot s{};
    const uint64_t before = now_ticks();
    s.monotonic_raw_ns = clock_ns(CLOCK_MONOTONIC_RAW);
    s.monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    s.realtime_ns = clock_ns(CLOCK_REALTIME);
    s.bracket_ticks = now_ticks() - before;
    s.ticks = before + s.bracket_ticks / 2;
    if (i == 0 || s.bracket_ticks < best.bracket_ticks) best = s;
  }
  return best;
}

uint64_t ticks_per_second(const Snapshot& first, const Snapshot& second) {
  const int64_t ns = second.monotonic_raw_ns - first.monotonic_raw_ns;
  if (!counter_is_clock || ns <= 0 || second.ticks <= first.ticks) return 1'000'000'000;
  return static_cast<uint64_t>(static_cast<double>(second.ticks - first.ticks) * 1e9 / static_cast<double>(ns) + 0.5);
}

}  // namespace slr
