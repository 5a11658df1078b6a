// The density guard: what recording costs, estimated once a second, and what is given up so that it stays below
// max_overhead. Only times of devices are ever given up; the host's stay.
//
//   cost = records · c_record + events · (c_host + c_gpu), per second
//   c_host: measured around one driver call in 64; c_gpu: two events back to back on our own stream
//   too much → the deepest ranges go without events → all lanes of a device but its first → all steps but every 2nd,
//   4th …
#pragma once

#include <atomic>
#include <cstdint>

#include "stageline_record.h"

namespace slr {

struct Guard {
  std::atomic<uint32_t> depth_limit;  // ranges inside this number of others get no events
  std::atomic<uint32_t> only_first;   // 1: only the first lane of each device gets events
  std::atomic<uint32_t> every;        // only steps divisible by this get events; UINT32_MAX: none
};
extern Guard guard;

// The device side's share of the hot path, in the guard's terms.
struct DeviceCounts {
  std::atomic<uint64_t> events, sampled_calls, sampled_ticks, ranges;
  std::atomic<uint64_t> by_depth[8];
  std::atomic<uint64_t> lanes_beside_first;
};
extern DeviceCounts device_counts;

void begin_guard();
// The background thread calls it once a second. `records` is the number so far, `gpu_ns` an event's cost on a stream.
void judge_overhead(int64_t now_ns, uint64_t records, double gpu_ns);
double estimated_overhead();

void add_device_stats(slr_statistics& statistics);
void add_anchor_stats(slr_statistics& statistics);
void forget_devices();  // in a child: nothing of the parent's drivers may be called
void close_devices();

}  // namespace slr
