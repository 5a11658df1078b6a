// The parts of a timeline of devices, which device_timeline.h makes: items of host and devices, gaps and their
// owners, and the account.
#pragma once

#include "model/intervals.h"
#include "model/trace.h"

namespace stageline {

// Why a device was idle. Every idle nanosecond has one cause; nothing else sorts idle time (HTA's rules aside).
enum class IdleCause : uint8_t {
  // The activity of the host until the call that launched the next work returned:
  kInput,           // the DataLoader
  kBlocked,         // the host is within one call of the runtime or driver that does not return
  kWork,            // operators and Python between two launches
  kDispatch,        // launches and short stretches between them: the host feeds the device as fast as it can
  kCollector,       // Python's garbage collector
  kAllocator,       // the driver allocates or frees memory of the device, or pinned memory
  kHostCollective,  // hosts wait for each other: messages, objects, barriers, stores
  kUnseen,          // no slice covers the time, or launches are not known
  // The host was done:
  kBetween,  // short gaps before work that had been launched in time, and the latency of launches
  kStream,   // long gaps: what the stream waited for is unknown
};
inline constexpr size_t kIdleCauses = static_cast<size_t>(IdleCause::kStream) + 1;
// The names in figures and parts of the bar.
inline constexpr ByEnum<IdleCause, std::string_view, kIdleCauses> kIdleCauseNames = {
    {"input", "blocked", "host", "launch", "collector", "allocator", "host-collective", "unseen", "kernel", "other"}};

struct HostNode {
  uint32_t parent = 0;                     // comes before this node; kHostRoot is its own parent
  StringId name = 0;                       // name of one of the slices that the node was made of
  Category category = Category::kOther;    // category of the same slice
  uint32_t slice = kNoSliceIndex;          // the longest slice of the node
  IdleCause context = IdleCause::kUnseen;  // owner by the node, or by one around it; kUnseen when neither has one
  bool counted = false;  // an annotation with a counter in its name: its slices are one node, though no two are equal
};
inline constexpr uint32_t kHostRoot = 0;

// A host node together with an owner: pieces of time are booked on such a pair.
using OwnerKey = uint32_t;
inline OwnerKey owner_key(uint32_t node, IdleCause owner) {
  return node * static_cast<uint32_t>(kIdleCauses) + static_cast<uint32_t>(owner);
}
inline uint32_t node_of_key(OwnerKey key) { return key / static_cast<uint32_t>(kIdleCauses); }

// Time without device work that is booked on one owner.
struct IdlePiece {
  int64_t start_ns, end_ns;
  OwnerKey key;
};

// Time that is booked on an owner in two ways: host work in a gap after a wait that had left the device idle.
struct DrainedIdle {
  uint32_t wait_node = 0;
  OwnerKey key = 0;
  int64_t idle_ns = 0;
};

using IdleTimes = ByEnum<IdleCause, int64_t, kIdleCauses>;

// A time without device work, on all streams or on one.
struct IdleGap {
  // Until host_end_ns the host had not launched the next work, or was held up in a call before it could begin.
  int64_t start_ns, host_end_ns, end_ns;
  // The device items that end last before the gap and that end it; kNone at an end of the window or of a recording.
  int32_t before, next;
  int32_t drain = -1;  // the wait that returned when the device had no queued work
  int64_t ns() const { return end_ns - start_ns; }
};

struct DeviceTimeline {
  static constexpr int32_t kNone = -1;
  // A call that takes longer than this is held up; launches take 2 to 20 µs.
  static constexpr int64_t kLongCallNs = 100'000;
  // Gaps shorter than this before work that was launched in time are the device's own pace, which needs no reason.
  static constexpr int64_t kBetweenNs = 30'000;
  struct HostItem {
    int64_t start_ns, end_ns;
    uint32_t slice;
    uint32_t node;
    int32_t before = kNone;     // the item from which `start_ns` is counted
    bool from_start = false;    // counted from that item's start, because the two overlap; otherwise from its end
    int32_t waits_for = kNone;  // index of device work
    // [pieces, own) is the stretch before the call, [own, pieces_end) the call itself.
    size_t pieces = 0, own = 0, pieces_end = 0;
  };
  struct DeviceItem {
    int64_t start_ns, end_ns;
    uint32_t slice;
    int32_t launch = kNone;  // index of a host item
    int32_t before = kNone;  // the work before it on its stream
    int32_t other = kNone;   // work on another stream
    int32_t needs = kNone;   // of communication: the work launched before it, if its kind always begins after that
    // A later call in which the host sat until this work began, although the work had been launched before.
    int32_t held_by = kNone;
    KernelClass kernel = KernelClass::kNone;
    uint16_t lane = 0;
  };
  struct Piece {
    OwnerKey key;
    int64_t dur_ns;
  };
  struct OwnedTime {
    int64_t start_ns, end_ns;
    IdleCause owner;
  };

  const Part* part = nullptr;
  // The window: the steps if there are any, else from the first to the last device work.
  int64_t start_ns = 0, end_ns = 0;
  int64_t step_count = 0;  // number of profiler steps in it
  // True when most device work is linked to its launch. Otherwise gaps have no owners, and a replay has nothing to go
  // by.
  bool linked = false;
  std::vector<HostNode> nodes;
  std::vector<HostItem> host;      // in order of start; the last one is the end of the last call or step
  std::vector<DeviceItem> device;  // in order of start
  std::vector<Piece> pieces;
  std::vector<uint32_t> order;    // the order of the replay: starts and ends of host items, and device work
  std::vector<IdleGap> gaps;      // of all streams together, over the whole window
  std::vector<OwnedTime> owners;  // why devices would be idle at any time of the host, in order
  int64_t lead_ns = 0;            // how much was added to the device's times, so that no work begins before its launch

  // The account; its parts add up to window_ns().
  int64_t compute_ns = 0, exposed_comm_ns = 0, exposed_memory_ns = 0, other_work_ns = 0;
  IdleTimes idle_ns = {};
  int64_t comm_ns = 0;  // of all communication, also during computation

  struct LongestIdle {
    int64_t dur_ns = 0, start_ns = 0;
  };
  std::vector<int64_t> idle_of_key;         // index: OwnerKey
  std::vector<LongestIdle> longest_of_key;  // index: OwnerKey; the longest single piece
  // For each node: kernels that are shorter than the call there which launched them alone; and the part of kBetween
  // before such kernels.
  std::vector<int64_t> short_pauses_ns, short_kernel_count;
  int64_t shortest_kernel_ns = 0;    // shortest of all kernels that compute: the least time that any kernel takes
  std::vector<DrainedIdle> drained;  // ordered by wait node and key
  std::vector<IdlePiece> idle;       // the host's parts of gaps, in order
  // When the devices had done the work of each step, in order (as in device_steps.h). Empty without steps.
  std::vector<int64_t> step_ends_ns;
  int64_t longest_gap_ns = 0;

  // Between two recordings of the rank, from the last work or step of the one to the first of the next: in no sum.
  std::vector<Interval> unrecorded;
  int64_t lost_ns = 0;  // how much of it lies in steps that count

  int64_t window_ns() const { return end_ns - start_ns - length_of(unrecorded); }
  int64_t all_idle_ns() const { return std::accumulate(idle_ns.begin(), idle_ns.end(), int64_t{0}); }
};

}  // namespace stageline
