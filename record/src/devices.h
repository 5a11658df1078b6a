// Devices that lanes work on: their pool of events, their anchors. Shared by devices.cc and anchors.cc.
#pragma once

#include <atomic>
#include <cstdint>

#include "device.h"
#include "driver.h"
#include "recorder.h"

namespace slr {

inline constexpr uint32_t kMaxDevices = 64, kMaxEvents = 1 << 16, kKeptAnchors = 64;

struct Event {
  void* handle;
  std::atomic<uint32_t> next;  // in the list of free ones, place + 1
  std::atomic<uint32_t> uses;
  uint16_t device;
  bool in_graph;  // a node of a captured graph: never in the pool again
};
extern Event events[kMaxEvents];

struct Anchor {
  void* event;  // nullptr: the driver gives times by itself
  int64_t device_ns;
  uint64_t host_ticks;
};

struct Device {
  const Driver* driver;
  void* context;
  int number;
  uint8_t clock;                      // number of its clock in the file
  std::atomic<uint64_t> free_events;  // tag << 32 | place + 1
  std::atomic<uint32_t> event_count, free_count;
  std::atomic<uint64_t> fresh_events;  // the same list of events that were never recorded, for graphs
  std::atomic<uint32_t> lost;          // the driver takes no more calls for it
  std::atomic<uint32_t> lane_count;
  bool one_queue;  // CUDA_DEVICE_MAX_CONNECTIONS=1
  char uuid[37];   // "" if the driver reports none

  // The background thread's.
  void* stream;
  Anchor anchors[kKeptAnchors];
  uint64_t anchor_count, chain_begin;  // anchors before chain_begin are of a counter that jumped since
  void* spare_events[2];
  uint64_t best_round_trip;
  int64_t next_anchor_ns, last_anchor_ns;
  int refused_in_a_row;
  double event_cost_ns;
};
extern Device devices[kMaxDevices];
extern std::atomic<uint32_t> device_count;

struct DeviceLane {
  Device* device;
  void* stream;
  bool beside_first;  // not the first lane of its device
};

// Converts milliseconds of a driver to whole ns.
inline int64_t whole_ns(float ms) {
  const double ns = static_cast<double>(ms) * 1e6;
  return static_cast<int64_t>(ns < 0 ? ns - 0.5 : ns + 0.5);
}

// Makes up to `count` events more. Takes a lock; not for the hot path.
void grow_pool(Device& device, uint32_t count);
// A time on the chain of anchors, and how far it lies from the newest one. False: not yet, or the driver refuses
// (*error).
bool time_of(Device& device, void* event, int64_t& ns, int64_t& distance_ns, int& error);

// --- graphs.cc
// An event node in the graph that is being captured, or kNoEvent.
uint32_t stamp_graph(Device& device, void* stream);
// Keeps a range that was captured: its replays are recorded from now on. False: there is no room.
bool keep_graph_range(const Record& record, const Extra& extra);
// Looks at all of them: what was replayed since is recorded.
void harvest_graphs();
bool graphs_wait();
void forget_graphs();
// Free events and their lists, of devices.cc.
uint32_t take_event(std::atomic<uint64_t>& list);
void grow_fresh(Device& device, uint32_t count);

// The calling thread works for the device from now on. False: it is lost.
bool bind_device(Device& device);

}  // namespace slr
