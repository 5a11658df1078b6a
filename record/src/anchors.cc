// Anchors: what a device's clock showed at a moment of the host's.
//
// An event on our own stream between two readings of the host's clock: the device's time lies between them. The best of
// several round trips counts. One that took four times as long as the best ever says little about the clocks, but is
// still a link of the chain.
#include "anchors.h"

#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "devices.h"
#include "guard.h"

namespace slr {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int kFirstTries = 16, kTries = 8;
constexpr int64_t kMaxSpinNs = 2'000'000;     // a device that is full answers late: not now, then
constexpr int64_t kUnaskedNs = 30 * kSecond;  // one hardware queue, and steps are not announced
constexpr uint32_t kFewEvents = 128, kMoreEvents = 512;

std::atomic<uint32_t> asked{0};
std::atomic<uint64_t> taken{0}, refused{0}, worst_round_trip{0};
uint32_t jitter = 1;

int64_t next_due(int64_t now) {
  jitter = jitter * 1664525 + 1013904223;  // ±10 %: never in step with the program
  return now + kSecond * 9 / 10 + static_cast<int64_t>(jitter >> 8) * (kSecond / 5) / (1 << 24);
}

// One round trip. False: the device did not answer in time, or refused.
bool round_trip(Device& d, void* event, uint64_t& before, uint64_t& after) {
  before = now_ticks();
  if (const int error = d.driver->record(event, d.stream)) {
    if (d.driver->is_lost(error)) d.lost.store(1);
    return false;
  }
  const int64_t until = clock_ns(CLOCK_MONOTONIC) + kMaxSpinNs;
  for (;;) {
    const int error = d.driver->query(event);
    after = now_ticks();
    if (error == 0) return true;
    if (error != d.driver->not_ready) {
      if (d.driver->is_lost(error)) d.lost.store(1);
      return false;
    }
    if (clock_ns(CLOCK_MONOTONIC) > until) return false;
  }
}

// Two events back to back on our own stream: what one costs the device.
void measure_event_cost(Device& d) {
  float least = 1e9f;
  for (int i = 0; i < 8; ++i) {
    uint64_t before, after;
    float ms = 0;
    if (d.driver->record(d.spare_events[0], d.stream) != 0 || !round_trip(d, d.spare_events[1], before, after)) return;
    if (d.driver->elapsed(&ms, d.spare_events[0], d.spare_events[1]) == 0 && ms >= 0 && ms < least) least = ms;
  }
  if (least < 1e9f)
    d.event_cost_ns = least * 1e6 < 300 ? 300 : least * 1e6 > 5000 ? 5000 : static_cast<double>(least) * 1e6;
}

bool prepare(Device& d) {
  if (d.spare_events[1]) return true;
  if (!d.stream && (d.driver->make_stream(&d.stream) != 0 || !d.stream)) return false;
  for (void*& event : d.spare_events)
    if (!event && d.driver->make_event(&event) != 0) return event = nullptr, false;
  if (d.driver->elapsed) measure_event_cost(d);
  return true;
}

void take_anchor(Device& d) {
  if (!bind_device(d) || !prepare(d)) return;
  const bool first = d.anchor_count == 0;
  uint64_t best = UINT64_MAX, best_before = 0, best_after = 0;
  for (int i = 0; i < (first ? kFirstTries : kTries); ++i) {
    uint64_t before, after;
    if (!round_trip(d, d.spare_events[1], before, after)) break;
    if (after - before >= best) continue;
    best = after - before;
    best_before = before;
    best_after = after;
    void* const event = d.spare_events[0];
    d.spare_events[0] = d.spare_events[1];
    d.spare_events[1] = event;
  }
  if (best == UINT64_MAX) {
    refused.fetch_add(1);
    return;
  }
  Anchor anchor{nullptr, 0, best_before + best / 2};
  if (d.driver->has_timestamps) {
    if (d.driver->read_event(d.spare_events[0], &anchor.device_ns) != 0) return;
  } else if (!first) {
    const Anchor& last = d.anchors[(d.anchor_count - 1) % kKeptAnchors];
    float ms = 0;
    const double host_ns =
        static_cast<double>(anchor.host_ticks - last.host_ticks) * 1e9 / static_cast<double>(state.ticks_per_second);
    const double slack_ns = 2e6 + host_ns * 0.01;
    if (d.driver->elapsed(&ms, last.event, d.spare_events[0]) != 0) {
      refused.fetch_add(1);
      return;
    }
    if (static_cast<double>(ms) * 1e6 > host_ns - slack_ns && static_cast<double>(ms) * 1e6 < host_ns + slack_ns) {
      anchor.device_ns = last.device_ns + whole_ns(ms);
    } else {  // the counter jumped, or wrapped: a new chain, continued by the host's clock
      refused.fetch_add(1);
      anchor.device_ns = last.device_ns + static_cast<int64_t>(host_ns);
      d.chain_begin = d.anchor_count;
    }
  }
  if (!d.driver->has_timestamps) {  // this event stays; the one it replaces is used again
    void* old = d.anchor_count >= kKeptAnchors ? d.anchors[d.anchor_count % kKeptAnchors].event : nullptr;
    if (!old && d.driver->make_event(&old) != 0) return;
    anchor.event = d.spare_events[0];
    d.spare_events[0] = old;
  }
  d.anchors[d.anchor_count++ % kKeptAnchors] = anchor;
  if (!first && best > 4 * d.best_round_trip && ++d.refused_in_a_row < 8) {
    refused.fetch_add(1);
    return;
  }
  d.refused_in_a_row = 0;
  if (first || best < d.best_round_trip) d.best_round_trip = best;
  if (best > worst_round_trip.load()) worst_round_trip.store(best);
  taken.fetch_add(1);
  add_anchor(d.clock, anchor.device_ns, best_before, best_after);
}

}  // namespace

void ask_for_anchors() { asked.fetch_add(1, std::memory_order_relaxed); }

void begin_anchors() {
  begin_guard();
  taken = refused = worst_round_trip = 0;
}

void keep_anchors(int64_t now) {
  static int64_t next_judgement = 0;
  static uint32_t answered = 0;
  const uint32_t count = device_count.load(std::memory_order_acquire), wanted = asked.load(std::memory_order_relaxed);
  double event_cost = 2500;
  for (uint32_t i = 0; i < count; ++i) {
    Device& d = devices[i];
    if (d.lost.load()) continue;
    event_cost = d.event_cost_ns;
    if (d.event_count.load() > 0 && d.free_count.load() < kFewEvents && bind_device(d)) grow_pool(d, kMoreEvents);
    const bool due = d.anchor_count == 0 || (d.one_queue ? wanted != answered || now - d.last_anchor_ns > kUnaskedNs
                                                         : now >= d.next_anchor_ns);
    if (!due) continue;
    take_anchor(d);
    d.last_anchor_ns = now;
    d.next_anchor_ns = next_due(now);
  }
  answered = wanted;
  if (now - next_judgement >= 0 || next_judgement - now > 2 * kSecond) {
    slr_statistics s{};
    s.size = sizeof s;
    slr_stats(&s);
    judge_overhead(now, s.records, event_cost);
    next_judgement = now + kSecond;
  }
}

bool device_times_wait() {
  if (graphs_wait()) return true;
  const uint32_t count = device_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i)
    if (devices[i].free_count.load() != devices[i].event_count.load()) return true;
  return false;
}

void add_anchor_stats(slr_statistics& s) {
  s.anchors = taken.load();
  s.anchors_refused = refused.load();
  if (state.hot)
    s.worst_round_trip_ns = static_cast<uint64_t>(static_cast<double>(worst_round_trip.load()) * 1e9 /
                                                  static_cast<double>(state.ticks_per_second));
}

}  // namespace slr
