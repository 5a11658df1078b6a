#include <string.h>

#include "anchors.h"

namespace slr {

std::atomic<uint32_t> lanes_version{0};

namespace {

struct ClockEntry {
  uint8_t kind;   // 0 a snapshot of the host, 1 an anchor
  uint8_t clock;  // of an anchor: which device clock
  uint16_t reserved[3];
  union {
    Snapshot host;
    struct {
      int64_t device_ns;
      uint64_t before_ticks, after_ticks;
    } device;
  };
};
static_assert(sizeof(ClockEntry) == 48);

constexpr uint32_t kKept = 1024, kAgain = 64;
ClockEntry kept[kKept], first_snapshot;
uint64_t added = 0, written = 0;

void add(const ClockEntry& entry) {
  if (added == 0) first_snapshot = entry;
  kept[added++ % kKept] = entry;
  if (added - written > kKept) written = added - kKept;  // the disk refuses for minutes: the oldest go
}

}  // namespace

void begin_clock_log() { added = written = 0; }

void add_snapshot(const Snapshot& snapshot) {
  ClockEntry entry{};
  entry.host = snapshot;
  add(entry);
}

void add_anchor(uint8_t clock, int64_t device_ns, uint64_t before_ticks, uint64_t after_ticks) {
  ClockEntry entry{};
  entry.kind = 1;
  entry.clock = clock;
  entry.device = {device_ns, before_ticks, after_ticks};
  add(entry);
}

bool clocks_waiting() { return written < added; }

bool put_clocks(ColdFile& cold, bool again) {
  static ClockEntry rows[kKept + 1];
  uint32_t n = 0;
  uint64_t from = written;
  if (again) {
    rows[n++] = first_snapshot;
    const uint64_t earliest = added > kAgain ? added - kAgain : 0;
    if (from > earliest) from = earliest;
  }
  for (; from < added; ++from) rows[n++] = kept[from % kKept];
  if (n > 0 && !cold.write(kClock, rows, n * sizeof rows[0], 0)) return false;
  written = added;
  return true;
}

}  // namespace slr
