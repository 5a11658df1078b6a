#include "guard.h"

#include "recorder.h"

namespace slr {

Guard guard;
DeviceCounts device_counts;

namespace {

constexpr double kRecordNs = 50;
constexpr int kPatience = 2;  // seconds above the limit before anything is given up

int64_t last_ns = 0;
uint64_t last_records = 0, last_events = 0, last_depth[8] = {}, last_beside = 0;
int above = 0;
std::atomic<double> share{0};

}  // namespace

void begin_guard() {
  guard.depth_limit.store(kMaxOpen);
  guard.only_first.store(0);
  guard.every.store(1);
  device_counts.events = device_counts.sampled_calls = device_counts.sampled_ticks = device_counts.ranges = 0;
  for (auto& n : device_counts.by_depth) n = 0;
  device_counts.lanes_beside_first = 0;
  last_ns = 0;
  last_records = last_events = last_beside = 0;
  for (uint64_t& n : last_depth) n = 0;
  above = 0;
  share.store(0);
}

double estimated_overhead() { return share.load(); }

void judge_overhead(int64_t now_ns, uint64_t records, double gpu_ns) {
  const uint64_t events = device_counts.events.load(), calls = device_counts.sampled_calls.load();
  const double tick_ns = 1e9 / static_cast<double>(state.ticks_per_second);
  const double host_ns =
      calls ? static_cast<double>(device_counts.sampled_ticks.load()) * tick_ns / static_cast<double>(calls) : 0;
  uint64_t depth_events[8];
  for (int d = 0; d < 8; ++d) {
    const uint64_t n = device_counts.by_depth[d].load();
    depth_events[d] = n - last_depth[d];
    last_depth[d] = n;
  }
  const uint64_t beside = device_counts.lanes_beside_first.load();
  const bool others = beside != last_beside;
  last_beside = beside;
  const double cost = static_cast<double>(records - last_records) * kRecordNs +
                      static_cast<double>(events - last_events) * (host_ns + gpu_ns);
  const double ns = static_cast<double>(now_ns - last_ns);
  const bool judged = last_ns != 0 && ns > 0;
  const bool any_events = events != last_events;
  last_ns = now_ns;
  last_records = records;
  last_events = events;
  if (!judged) return;
  share.store(cost / ns);
  const double most = state.settings.max_overhead;
  if (most < 0 || cost / ns <= most || !any_events) {
    above = 0;
    return;
  }
  if (++above < kPatience) return;
  above = 0;
  uint32_t deepest = 0;
  for (uint32_t d = 0; d < 8; ++d)
    if (depth_events[d] > 0) deepest = d;
  if (deepest > 0) {
    guard.depth_limit.store(deepest);
  } else if (others && guard.only_first.load() == 0) {
    guard.only_first.store(1);
  } else {
    const uint32_t every = guard.every.load();
    guard.every.store(state.step.load() < 0 || every >= 1024 ? UINT32_MAX : every * 2);
  }
}

}  // namespace slr
