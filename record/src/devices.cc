// Times of devices without waiting for them.
//
//   caller's stream:  … ──[event a]── work ──[event b]── …        recorded by the caller, two driver calls a range
//   background:       b ready?  →  b − anchor, a − anchor         read when the stream has passed them
//   own stream:       ──[anchor]────────[anchor]────────[anchor]  once a second, between two readings of the host's
//   clock
//
// An event has no time of its own, only a distance to another, in float milliseconds: exact to 61 ns at one second, to
// 4 µs at a minute. So distances are taken to an anchor at most about a second away, and anchors are chained in whole
// ns. The file has times on that chain and the anchors raw; whoever reads it draws the line between them.
//
// Captured ranges can be nodes of their graph: graphs.cc.
//
// Events come from a pool per device, a lock-free list; the background thread keeps it filled. A range whose stream is
// being captured, or for which there is no event, or whose driver refuses, keeps the host's times and is counted.
#include "devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "anchors.h"
#include "clock.h"
#include "guard.h"

namespace slr {

Event events[kMaxEvents];
Device devices[kMaxDevices];
std::atomic<uint32_t> device_count{0};

namespace {

constexpr uint32_t kFirstEvents = 256, kGraphEvents = 1024;
constexpr int64_t kFarNs = 2'000'000'000;  // float milliseconds are coarse beyond

Lock binding;  // of devices, event_total, lanes' binding
std::atomic<uint32_t> event_total{0};
DeviceLane device_lanes[kMaxLanes];
std::atomic<uint32_t> bind_tries{0};

void put_event(std::atomic<uint64_t>& list, uint32_t place) {
  uint64_t head = list.load(std::memory_order_relaxed);
  for (;;) {
    events[place].next.store(static_cast<uint32_t>(head), std::memory_order_relaxed);
    const uint64_t next = ((head >> 32) + 1) << 32 | (place + 1);
    if (list.compare_exchange_weak(head, next, std::memory_order_acq_rel, std::memory_order_relaxed)) return;
  }
}

void give_event(uint32_t place) {
  Device& d = devices[events[place].device];
  d.free_count.fetch_add(1, std::memory_order_relaxed);
  put_event(d.free_events, place);
}

std::atomic<const Driver*> drivers[4];
bool after_fork = false;  // of a process that used a driver: it may not be called here

// Under the lock.
const Driver* driver_of(uint8_t kind) {
  if (kind > SLR_ACL) return nullptr;
  const Driver* found = drivers[kind].load(std::memory_order_relaxed);
  if (!found) {
    found = kind == SLR_CUDA ? cuda_driver() : kind == SLR_HIP ? hip_driver() : acl_driver();
    drivers[kind].store(found, std::memory_order_release);
  }
  return found;
}

// As nvidia-smi writes it, without its prefix.
void write_uuid(Device& d) {
  uint8_t bytes[16];
  d.uuid[0] = '\0';
  if (d.number < 0 || !d.driver->read_uuid || d.driver->read_uuid(d.number, bytes) != 0) return;
  char* to = d.uuid;
  for (int i = 0; i < 16; ++i)
    to += snprintf(to, static_cast<size_t>(d.uuid + sizeof d.uuid - to),
                   i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
}

// Under the lock.
Device* device_of(const Driver* driver, void* context, int number, bool one_queue) {
  const uint32_t count = device_count.load();
  for (uint32_t i = 0; i < count; ++i)
    if (devices[i].driver == driver && devices[i].context == context && !devices[i].lost.load()) return &devices[i];
  if (count >= kMaxDevices) return nullptr;
  Device& d = devices[count];
  d.driver = driver;
  d.context = context;
  d.number = number;
  d.clock = static_cast<uint8_t>(count + 1);
  d.one_queue = one_queue;
  write_uuid(d);
  d.free_events.store(0);
  d.fresh_events.store(0);
  d.event_count.store(0);
  d.free_count.store(0);
  d.lost.store(0);
  d.lane_count.store(0);
  d.stream = nullptr;
  d.anchor_count = d.chain_begin = 0;
  d.best_round_trip = 0;
  d.next_anchor_ns = d.last_anchor_ns = 0;
  d.refused_in_a_row = 0;
  d.event_cost_ns = 2500;  // the dearest GPU known, until it is measured
  d.spare_events[0] = d.spare_events[1] = nullptr;
  device_count.store(count + 1, std::memory_order_release);
  return &d;
}

// No work begins before it was asked for, or ends in the future: a counter that jumped says such things.
bool is_possible(const Device& d, const Record& record, int64_t start, int64_t end) {
  constexpr double kSlackNs = 5e7;
  if (d.driver->has_timestamps) return true;  // of unknown unit
  const Anchor& newest = d.anchors[(d.anchor_count - 1) % kKeptAnchors];
  const double tick_ns = 1e9 / static_cast<double>(state.ticks_per_second);
  const auto host_since = [&](uint64_t ticks) {  // ns from the anchor
    return static_cast<double>(static_cast<int64_t>(ticks - newest.host_ticks)) * tick_ns;
  };
  return static_cast<double>(start - newest.device_ns) > host_since(record.start_ticks) - kSlackNs &&
         static_cast<double>(end - newest.device_ns) < host_since(now_ticks()) + kSlackNs;
}

void mark_lost(Device& d, int error) {
  if (d.driver->is_lost(error)) d.lost.store(1, std::memory_order_release);
}

thread_local Device* bound __attribute__((tls_model("initial-exec"))) = nullptr;  // of the background thread

}  // namespace

uint32_t take_event(std::atomic<uint64_t>& list) {
  uint64_t head = list.load(std::memory_order_acquire);
  for (;;) {
    const auto place = static_cast<uint32_t>(head);
    if (place == 0) return kNoEvent;
    const uint64_t next = ((head >> 32) + 1) << 32 | events[place - 1].next.load(std::memory_order_relaxed);
    if (list.compare_exchange_weak(head, next, std::memory_order_acq_rel, std::memory_order_acquire)) return place - 1;
  }
}

bool time_of(Device& d, void* event, int64_t& ns, int64_t& distance, int& error) {
  error = 0;
  distance = 0;
  if (d.driver->has_timestamps) {
    error = d.driver->read_event(event, &ns);
    return error == 0;
  }
  if (d.anchor_count == 0) return false;
  const auto since = [&](const Anchor& anchor, int64_t& out) {
    float ms = 0;
    error = d.driver->elapsed(&ms, anchor.event, event);
    if (error != 0 || !(ms > -1e9f && ms < 1e9f)) return false;
    out = whole_ns(ms);
    return true;
  };
  const Anchor& newest = d.anchors[(d.anchor_count - 1) % kKeptAnchors];
  if (!since(newest, distance)) return false;
  ns = newest.device_ns + distance;
  if (distance <= kFarNs && distance >= -kFarNs) return true;
  const Anchor* nearest = &newest;
  const uint64_t oldest = d.anchor_count > kKeptAnchors ? d.anchor_count - kKeptAnchors : 0;
  for (uint64_t i = oldest > d.chain_begin ? oldest : d.chain_begin; i < d.anchor_count; ++i) {
    const Anchor& anchor = d.anchors[i % kKeptAnchors];
    if (llabs(anchor.device_ns - ns) < llabs(nearest->device_ns - ns)) nearest = &anchor;
  }
  int64_t nearer = 0;
  if (nearest != &newest && since(*nearest, nearer)) ns = nearest->device_ns + nearer;
  return error == 0;
}

const Driver* loaded_driver(uint8_t kind) {
  static std::atomic<uint32_t> tries{0};
  if (kind > SLR_ACL || after_fork) return nullptr;
  if (const Driver* found = drivers[kind].load(std::memory_order_acquire)) return found;
  const uint32_t tried = tries.fetch_add(1, std::memory_order_relaxed);
  if ((tried & (tried - 1)) != 0) return nullptr;
  const int saved_errno = errno;
  const Driver* found = nullptr;
  if (const Held held(binding); held) found = driver_of(kind);
  errno = saved_errno;
  return found;
}

// A new event's place, or kNoEvent.
static uint32_t new_event(Device& d, bool in_graph) {
  void* handle = nullptr;
  if (const int error = d.driver->make_event(&handle)) return mark_lost(d, error), kNoEvent;
  const uint32_t place = event_total.fetch_add(1);
  if (place >= kMaxEvents) {
    event_total.store(kMaxEvents);
    d.driver->destroy_event(handle);
    return kNoEvent;
  }
  events[place].handle = handle;
  events[place].device = static_cast<uint16_t>(&d - devices);
  events[place].in_graph = in_graph;
  return place;
}

void grow_pool(Device& d, uint32_t count) {
  for (uint32_t i = 0; i < count && !d.lost.load(); ++i) {
    const uint32_t place = new_event(d, false);
    if (place == kNoEvent) return;
    d.event_count.fetch_add(1);
    give_event(place);
  }
}

void grow_fresh(Device& d, uint32_t count) {
  for (uint32_t i = 0; i < count && !d.lost.load(); ++i)
    if (const uint32_t place = new_event(d, true); place != kNoEvent) put_event(d.fresh_events, place);
}

bool bind_device(Device& d) {
  if (d.lost.load(std::memory_order_acquire)) return false;
  if (bound == &d) return true;
  if (const int error = d.driver->bind(d.context)) {
    mark_lost(d, error);
    return false;
  }
  d.driver->allow_queries();
  bound = &d;
  return true;
}

void bind_lane(uint16_t id) {
  if (!is_on()) return;
  const Held held(binding);
  if (!held) return;
  const int saved_errno = errno;
  Lane& lane = lanes[id];
  if (!lane.device.load(std::memory_order_relaxed)) {
    const Driver* driver = driver_of(lane.entry.device_kind);
    void* context = nullptr;
    int number = -1;
    uint64_t stream_id = 0;
    if (driver && driver->of_stream(lane.stream, &context, &number, &stream_id) == 0 && context) {
      const char* queues = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
      const bool one_queue = lane.entry.device_kind == SLR_CUDA && queues && strcmp(queues, "1") == 0;
      if (Device* d = device_of(driver, context, number, one_queue)) {
        if (d->event_count.load() == 0) {
          grow_pool(*d, kFirstEvents);
          if (state.settings.graphs && driver->record_in_graph) grow_fresh(*d, kGraphEvents);
        }
        DeviceLane& own = device_lanes[id];
        own.device = d;
        own.stream = lane.stream;
        own.beside_first = d->lane_count.fetch_add(1) > 0;
        if (const Held of_names(names); of_names) {
          lane.entry.device = static_cast<int16_t>(number);
          lane.entry.clock = d->clock;
          lane.entry.stream_id = stream_id;
          publish_lane(id);
        }
        lane.device.store(&own, std::memory_order_release);
      }
    }
  }
  errno = saved_errno;
}

bool same_device(const Lane& lane) {
  const DeviceLane* d = lane.device.load(std::memory_order_acquire);
  void* context = nullptr;
  // A stream's own handle distinguishes devices; the default streams (0, 1, 2) are the same on all.
  if (!d || reinterpret_cast<uintptr_t>(lane.stream) > 2) return true;
  return d->device->driver->current(&context) != 0 || context == d->device->context;
}

uint32_t stamp(uint16_t id, uint32_t depth) {
  Lane& lane = lanes[id];
  const DeviceLane* own = lane.device.load(std::memory_order_acquire);
  if (__builtin_expect(!own, 0)) {
    if (bind_tries.fetch_add(1, std::memory_order_relaxed) % 256 == 0) bind_lane(id);
    own = lane.device.load(std::memory_order_acquire);
    if (!own) {
      drop(SLR_DROP_DEVICE);
      return kNoEvent;
    }
  }
  Device& d = *own->device;
  if (d.lost.load(std::memory_order_relaxed) || lane.closed.load(std::memory_order_relaxed)) {
    drop(SLR_DROP_DEVICE);
    return kNoEvent;
  }
  if (own->beside_first && d.one_queue) {
    drop(SLR_DROP_ONE_QUEUE);
    return kNoEvent;
  }
  const uint32_t every = guard.every.load(std::memory_order_relaxed);
  if (depth >= guard.depth_limit.load(std::memory_order_relaxed) ||
      (own->beside_first && guard.only_first.load(std::memory_order_relaxed)) ||
      (every > 1 &&
       (every == UINT32_MAX || state.step.load(std::memory_order_relaxed) % static_cast<int32_t>(every) != 0))) {
    drop(SLR_DROP_GUARD);
    return kNoEvent;
  }
  const uint64_t count = device_counts.events.fetch_add(1, std::memory_order_relaxed);
  const bool timed = count % 64 == 0;
  const uint64_t before = timed ? now_ticks() : 0;
  int capturing = 0;
  int error = d.driver->is_capturing ? d.driver->is_capturing(own->stream, &capturing) : 0;
  if (error == 0 && capturing != 0 && state.settings.graphs)
    if (const uint32_t node = stamp_graph(d, own->stream); node != kNoEvent) return node;
  if (error != 0 || capturing != 0) {
    drop(capturing != 0 || d.driver->is_capture_error(error) ? SLR_DROP_CAPTURE : SLR_DROP_DEVICE);
    mark_lost(d, error);
    return kNoEvent;
  }
  const uint32_t event = take_event(d.free_events);
  if (event == kNoEvent) {
    drop(SLR_DROP_NO_EVENT);
    return kNoEvent;
  }
  d.free_count.fetch_sub(1, std::memory_order_relaxed);
  events[event].uses.store(1, std::memory_order_relaxed);
  error = d.driver->record(events[event].handle, own->stream);
  if (timed) {
    device_counts.sampled_ticks.fetch_add(now_ticks() - before, std::memory_order_relaxed);
    device_counts.sampled_calls.fetch_add(1, std::memory_order_relaxed);
  }
  if (error != 0) {
    give_event(event);
    drop(d.driver->is_capture_error(error) ? SLR_DROP_CAPTURE : SLR_DROP_DEVICE);
    mark_lost(d, error);
    return kNoEvent;
  }
  device_counts.by_depth[depth < 7 ? depth : 7].fetch_add(1, std::memory_order_relaxed);
  if (own->beside_first) device_counts.lanes_beside_first.fetch_add(1, std::memory_order_relaxed);
  return event;
}

void share_event(uint32_t event) { events[event].uses.fetch_add(1, std::memory_order_relaxed); }

void release_event(uint32_t event) {
  if (event < std::min(event_total.load(), kMaxEvents) && !events[event].in_graph &&
      events[event].uses.fetch_sub(1, std::memory_order_acq_rel) == 1)
    give_event(event);
}

// Returns whether events that wait for a device have these numbers. Another program may have overwritten the record.
static bool are_waited_for(uint32_t start, uint32_t end) {
  const uint32_t made = std::min(event_total.load(), kMaxEvents);
  if (start >= made || end >= made) return false;
  const auto in_use = [](const Event& event) { return event.in_graph || event.uses.load() > 0; };
  return events[start].device == events[end].device && events[end].device < device_count.load() &&
         in_use(events[start]) && in_use(events[end]);
}

DeviceState harvest(const Record& record, const Extra& extra, DeviceTimes& times) {
  if (!are_waited_for(extra.start_event, extra.end_event)) return DeviceState::kNever;
  Device& d = devices[events[extra.end_event].device];
  const auto never = [&](slr_drop reason, int error) {
    mark_lost(d, error);
    drop(reason);
    release_event(extra.start_event);
    release_event(extra.end_event);
    return DeviceState::kNever;
  };
  if (events[extra.start_event].in_graph || events[extra.end_event].in_graph) {
    // The capture itself ran nothing; its replays will. A range that only begins or ends in a capture has none.
    if (events[extra.start_event].in_graph && events[extra.end_event].in_graph) keep_graph_range(record, extra);
    return never(SLR_DROP_CAPTURE, 0);
  }
  if (!bind_device(d)) return never(SLR_DROP_DEVICE, 0);
  if (!d.driver->has_timestamps && d.anchor_count == 0) return DeviceState::kWaiting;
  int error = d.driver->query(events[extra.end_event].handle);
  if (error == d.driver->not_ready) return DeviceState::kWaiting;
  if (error != 0) return never(SLR_DROP_DEVICE, error);
  int64_t start = 0, end = 0, distance = 0;
  if (!time_of(d, events[extra.start_event].handle, start, distance, error) ||
      !time_of(d, events[extra.end_event].handle, end, distance, error))
    return error == d.driver->not_ready ? DeviceState::kWaiting : never(SLR_DROP_DEVICE, error);
  constexpr int64_t kLongest = int64_t{86'400} * 1'000'000'000 * 7;
  if (end < start || end - start > kLongest || !is_possible(d, record, start, end)) return never(SLR_DROP_BAD_TIME, 0);
  release_event(extra.start_event);
  release_event(extra.end_event);
  device_counts.ranges.fetch_add(1, std::memory_order_relaxed);
  times = {start, end - start};
  return DeviceState::kReady;
}

void add_device_stats(slr_statistics& s) {
  s.device_ranges = device_counts.ranges.load();
  s.events = device_counts.events.load();
  const uint64_t calls = device_counts.sampled_calls.load();
  if (calls > 0 && state.hot)
    s.driver_ns =
        static_cast<uint64_t>(static_cast<double>(device_counts.sampled_ticks.load()) / static_cast<double>(calls) *
                              static_cast<double>(s.events) * 1e9 / static_cast<double>(state.ticks_per_second));
  add_anchor_stats(s);
  s.overhead = estimated_overhead();
}

void forget_devices() {
  for (const auto& driver : drivers) after_fork = after_fork || driver.load() != nullptr;
  forget_graphs();
  device_count.store(0);
  event_total.store(0);
  const uint32_t count = lane_count.load();
  for (uint32_t id = 1; id < count; ++id) {
    lanes[id].device.store(nullptr);
    if (lanes[id].entry.device_kind != SLR_HOST)
      lanes[id].closed.store(1);  // of the parent; the driver is unusable here
  }
}

void close_devices() {
  forget_graphs();
  // Events stay with the driver: at exit it may be gone, and it frees them with the context.
  const uint32_t count = lane_count.load();
  for (uint32_t id = 1; id < count; ++id) lanes[id].device.store(nullptr);
  const uint32_t device_total = device_count.exchange(0);
  for (uint32_t i = 0; i < device_total; ++i) devices[i].anchor_count = 0;
}

}  // namespace slr
