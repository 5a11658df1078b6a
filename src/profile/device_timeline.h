// One rank's devices and the host that feeds them, as one graph: what the devices did, who owns each of their idle
// gaps, and how long the same work would have taken without one of the owners.
//
//   host     ──[ops]──▶ launch A ──[ops, Python]──▶ wait ═════▶│──[ops]──▶ launch B ──▶
//                          │                         ▲                        │
//   device                 ▼                         │                        ▼
//   stream 7   ░░░░░░░░░░░ A ████████████████████████┘░░░░░░ idle gap ░░░░░░░ B ████
//
// Host items are the calls that launch device work or wait for it, of all threads that launch, in the order of their
// starts. Between them lie stretches of other host work. Every nanosecond of both is owned by the innermost slice that
// is open then; slices with equal names under equal names are one HostNode. A gap of the devices belongs to what the
// host did until it ended the call that launched the next work; what is left of it is the devices' own.
//
// The replay keeps every recorded lag: an item begins its lag after the last of what it depends on has ended.
//
//   (work that was launched, and began only when a later call let go of the host, also follows that call)
//   launch, wait     after the item before it on the host, plus the stretch between them
//   device work      after the work before it on its stream, the start of its launch, and work of another stream that
//                    ended just before it began and is the last of the three
//   return of a wait after the device work whose end it was seen to wait for
//
// Without changes it returns what was recorded; with a stretch, a wait or device work taken out it says what is won.
// Durations of collectives stay: what other ranks do is not in the picture.
//
// O(slices of the part) to build, O(host items + device work) a replay.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/trace.h"

namespace stageline {

// What the host was at while a device stood idle.
enum class IdleOwner : uint8_t {
  kInput,           // the DataLoader
  kCollector,       // Python's garbage collector
  kAllocator,       // memory of the device or pinned memory is allocated or freed by the driver
  kHostCollective,  // a collective of the hosts: objects, barriers, stores
  kBlocked,         // within one call into the runtime or driver that does not return
  kWork,            // operators and Python between two launches
  kDispatch,        // launches and what lies between them, each short: the host feeds the device as fast as it can
  kUnseen,          // no slice covers the time
};
inline constexpr size_t kIdleOwnerCount = static_cast<size_t>(IdleOwner::kUnseen) + 1;

struct HostNode {
  uint32_t parent = 0;                     // stands before this node; of kHostRoot itself
  StringId name = 0;                       // of a slice it was made of
  Category category = Category::kOther;    // likewise
  uint32_t slice = kNoSliceIndex;          // the longest such slice
  IdleOwner context = IdleOwner::kUnseen;  // what the node or one around it says; kUnseen: nothing
};
inline constexpr uint32_t kHostRoot = 0;

// A host node as one of the owners: what the pieces of time are booked on.
using OwnerKey = uint32_t;
inline OwnerKey owner_key(uint32_t node, IdleOwner owner) {
  return node * static_cast<uint32_t>(kIdleOwnerCount) + static_cast<uint32_t>(owner);
}
inline uint32_t node_of_key(OwnerKey key) { return key / static_cast<uint32_t>(kIdleOwnerCount); }
inline IdleOwner owner_of_key(OwnerKey key) {
  return static_cast<IdleOwner>(key % static_cast<uint32_t>(kIdleOwnerCount));
}

// An owner that the same time is booked on in two ways: the host work in gaps after a wait that ran the device dry.
struct DrainedIdle {
  uint32_t wait_node = 0;
  OwnerKey key = 0;
  int64_t idle_ns = 0;
};

struct DeviceTimeline {
  static constexpr int32_t kNone = -1;
  struct HostItem {
    int64_t start_ns, end_ns;
    uint32_t slice;
    uint32_t node;
    int32_t before = kNone;                      // the item that `start_ns` is counted from
    bool from_start = false;                     // from its start, since the two overlap; else from its end
    int32_t waits_for = kNone;                   // device work
    size_t pieces = 0, own = 0, pieces_end = 0;  // [pieces, own): the stretch before it; [own, pieces_end): the call
  };
  struct DeviceItem {
    int64_t start_ns, end_ns;
    uint32_t slice;
    int32_t launch = kNone;   // host item
    int32_t before = kNone;   // on its stream
    int32_t other = kNone;    // on another stream
    int32_t held_by = kNone;  // a later call that the host sat in until this began, though launched before
    KernelClass kernel = KernelClass::kNone;
  };
  struct Piece {
    OwnerKey key;
    int64_t dur_ns;
  };

  const Part* part = nullptr;
  int64_t start_ns = 0, end_ns = 0;  // the window: steps where there are any, from first to last device work else
  int64_t step_count = 0;            // profiler steps in it
  std::vector<HostNode> nodes;
  std::vector<HostItem> host;      // by start; the last one is no call but the end of the last call or step
  std::vector<DeviceItem> device;  // by start
  std::vector<Piece> pieces;
  std::vector<uint32_t> order;  // of the replay: starts and ends of host items, device work

  // The account. Sums to end_ns − start_ns.
  int64_t compute_ns = 0, exposed_comm_ns = 0, exposed_memory_ns = 0, other_work_ns = 0;
  std::array<int64_t, kIdleOwnerCount> idle_ns = {};
  int64_t between_ns = 0;      // short gaps before work that had been launched in time, and the launch's own latency
  int64_t stream_wait_ns = 0;  // long ones: nothing recorded says what the stream waited for

  struct LongestIdle {
    int64_t dur_ns = 0, start_ns = 0;
  };
  std::vector<int64_t> idle_of_key;         // by OwnerKey
  std::vector<LongestIdle> longest_of_key;  // by OwnerKey: the longest single piece of it
  // By node: kernels shorter than the call there that launched them alone, and of between_ns what lies before them.
  std::vector<int64_t> short_pauses_ns, short_kernel_count;
  int64_t shortest_kernel_ns = 0;    // of all that compute: what a kernel takes whatever it does
  std::vector<DrainedIdle> drained;  // by wait node and key
  int64_t longest_gap_ns = 0;

  int64_t window_ns() const { return end_ns - start_ns; }
  int64_t all_idle_ns() const;
};

// Empty `device` where the part has no device work. `truncated`: the recording ends before its steps do.
DeviceTimeline device_timeline(const Trace& trace, const Part& part, bool truncated);

// Whether most device work is linked to its launch: without, gaps have no owners and the replay nothing to go by.
bool has_launches(const DeviceTimeline& timeline);

// What a replay leaves out. Empty lists leave out nothing.
struct TakenOut {
  std::vector<bool> keys;          // by OwnerKey: host time of these pieces
  std::vector<bool> wait_nodes;    // by node: calls that return at once
  std::vector<int64_t> device_ns;  // by device item: its new length, −1: as recorded
};
// The window's length in that world.
int64_t replayed_ns(const DeviceTimeline& timeline, const TakenOut& out);

// Calls as the driver and the runtime name them.
bool is_allocator_call(std::string_view name);
bool is_waiting_call(std::string_view name);

}  // namespace stageline
