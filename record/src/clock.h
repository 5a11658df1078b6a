// The clock that stamps records: the processor's counter where it is constant and the kernel trusts it, else
// CLOCK_MONOTONIC_RAW (30 ns dearer). Ticks mean something only with snapshots of the same recording.
#pragma once

#include <time.h>

#include <cstdint>

#include "layout.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace slr {

extern bool counter_is_clock;  // set once by choose_clock(), before anything is recorded

inline int64_t clock_ns(clockid_t id) {
  timespec t;
  clock_gettime(id, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

inline uint64_t now_ticks() {
#if defined(__x86_64__)
  if (__builtin_expect(counter_is_clock, 1)) return __rdtsc();
#elif defined(__aarch64__)
  if (__builtin_expect(counter_is_clock, 1)) {
    uint64_t ticks;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
#endif
  return static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC_RAW));
}

// STAGELINE_CLOCK=raw keeps the counter out.
ClockKind choose_clock();
// Takes the tightest of five readings, in about 0.5 µs.
Snapshot take_snapshot();
// From two snapshots; 1e9 where ticks are nanoseconds.
uint64_t ticks_per_second(const Snapshot& first, const Snapshot& second);

}  // namespace slr
