#include "inject/device_times.h"

#include <time.h>

#include "clock.h"
#include "inject/injected.h"

namespace slr::cupti {
namespace {

constexpr uint32_t kPoints = 64;
constexpr int64_t kMinApartNs = 10'000'000;  // between readings: long compared with the time of one
constexpr int kMaxWaits = 2000;              // of a millisecond each, for the writer

// Holds a reading of both clocks.
struct Point {
  int64_t realtime_ns;
  uint64_t ticks;
};
Point points[kPoints];  // the last ones, a ring
uint64_t point_count = 0;
uint32_t points_of = 0;     // the recording in which they were read
double nominal_per_ns = 1;  // kept: the recording may end while its last kernels are read
int64_t last_raw_ns = 0;

// Times before the first reading and after the last lie on the line through the nearest two.
uint64_t ticks_of(int64_t realtime_ns) {
  const uint64_t first = point_count > kPoints ? point_count - kPoints : 0;
  uint64_t at = point_count - 1;
  while (at > first && points[at % kPoints].realtime_ns > realtime_ns) --at;
  const Point& a = points[at % kPoints];
  double per_ns = nominal_per_ns;
  if (point_count - first > 1) {
    const Point& from = at + 1 < point_count ? a : points[(at - 1) % kPoints];
    const Point& to = at + 1 < point_count ? points[(at + 1) % kPoints] : a;
    if (to.realtime_ns > from.realtime_ns)
      per_ns = static_cast<double>(to.ticks - from.ticks) / static_cast<double>(to.realtime_ns - from.realtime_ns);
  }
  return a.ticks +
         static_cast<uint64_t>(static_cast<int64_t>(static_cast<double>(realtime_ns - a.realtime_ns) * per_ns));
}

}  // namespace

void record_range(DoneRange& range, int64_t start_ns, int64_t end_ns) {
  for (int waits = 0; !has_room(2) && waits < kMaxWaits; ++waits) {
    const timespec nap = {0, 1'000'000};
    nanosleep(&nap, nullptr);
  }
  range.start_ticks = ticks_of(start_ns);
  range.end_ticks = ticks_of(end_ns);
  range.step = step_at(range.start_ticks);
  range.peer = -1;
  range.timed = range.began_in_window = true;
  record_done(range);
}

void read_clocks() {
  if (!is_on()) return;  // the clock that gives ticks is chosen when a recording begins
  if (points_of != state.recording) {
    point_count = 0;
    nominal_per_ns = static_cast<double>(state.hot->ticks_per_second) * 1e-9;
  }
  points_of = state.recording;
  const Snapshot s = take_snapshot();
  if (point_count > 0) {
    const Point& last = points[(point_count - 1) % kPoints];
    // A line through two readings close together misplaces kernels that run milliseconds away from it.
    if (s.monotonic_raw_ns - last_raw_ns < kMinApartNs) return;
    const int64_t moved = (s.realtime_ns - last.realtime_ns) - (s.monotonic_raw_ns - last_raw_ns);
    if (moved > 1'000'000 || moved < -1'000'000) point_count = 0;  // the clock was set: no line leads across
  }
  points[point_count++ % kPoints] = {s.realtime_ns, s.ticks};
  last_raw_ns = s.monotonic_raw_ns;
}

bool can_record() {
  if (!injection_is_on()) return false;
  if (points_of == state.recording && point_count > 1) return true;
  const timespec nap = {0, 2 * kMinApartNs};
  read_clocks();
  nanosleep(&nap, nullptr);
  read_clocks();
  return true;
}

}  // namespace slr::cupti
