// Clocks over time: snapshots of the host's, anchors of devices. The file keeps them raw; readers convert.
#pragma once

#include <atomic>
#include <cstdint>

#include "cold_file.h"
#include "layout.h"

namespace slr {

// All of these are the background thread's.
void add_snapshot(const Snapshot& snapshot);
// One reading of a device clock: between the two tick counts it showed `device_ns`.
void add_anchor(uint8_t clock, int64_t device_ns, uint64_t before_ticks, uint64_t after_ticks);
void begin_clock_log();  // forgets the recording before
bool clocks_waiting();
// Writes what waits; `again`: the first snapshot and the latest entries too, for a new file or table. False: refused.
bool put_clocks(ColdFile& cold, bool again);

void begin_anchors();            // forgets the recording before
void keep_anchors(int64_t now);  // takes those that are due, judges the guard
bool device_times_wait();        // some range has events in flight

struct WriterFacts {
  std::atomic<uint64_t> self_ns, written_records, written_bytes, write_errors;
};
extern WriterFacts writer_facts;
extern std::atomic<uint64_t> flush_failed;  // the last flush that timed out
extern bool all_is_written;                 // valid after the thread ended
extern std::atomic<uint32_t> lanes_version;

}  // namespace slr
