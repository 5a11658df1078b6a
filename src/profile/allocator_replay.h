// What a snapshot of PyTorch's allocator adds up to: the state at its moment, every instant before (events undone from
// the end), and why memory ran out.
//
//   snapshot   blocks and segments as they are at the end
//   backwards  an allocation is taken away again, a completed free put back: the state at any event
//
// Sums are those of torch's own _memory_viz.segsum: reserved = allocated + free internal + free external.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"

namespace stageline {

struct AllocatorSum {  // of a device
  int32_t device = 0;
  int64_t segments = 0, blocks = 0;
  int64_t reserved_bytes = 0;
  int64_t allocated_bytes = 0;      // asked for, in active blocks
  int64_t free_internal_bytes = 0;  // of active blocks what their rounding took
  int64_t free_external_bytes = 0;  // in blocks that are not active, those that wait for a stream included
  int64_t awaiting_bytes = 0;       // of these
  int64_t largest_free_bytes = 0;   // the largest inactive block
  int64_t sparse_segments = 0, sparse_bytes = 0;  // less than a tenth of them is active
  int64_t events = 0, allocations = 0, frees = 0, ooms = 0;
  int64_t peak_bytes = 0, peak_ns = 0;  // most that was held at once, until frees were complete; −1 without events
  int64_t peak_reserved_bytes = 0;
};

// An allocation that was there at some time of the history, or at the end. kNone: before the history, or still held.
struct AllocatorLife {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t allocated = kNone, freed = kNone;  // events
  uint32_t block = kNone;                     // into AllocatorSnapshot::blocks, of what is held at the end
  int32_t device = 0;
  int64_t bytes = 0;
};

enum class OomReason : uint8_t {
  kFull,        // what the allocator holds is in use, and the device has too little
  kFragmented,  // enough is free in the cache, in pieces that are too small
  kSplit,       // enough is free in all, but part in the cache and part on the device
  kElsewhere,   // a free piece was large enough: of another pool or kind, or a limit stood in the way
  kUnknown,     // the history does not say enough
};
const char* oom_reason_name(OomReason reason);

struct AllocatorOom {
  uint32_t event = 0;
  int32_t device = 0;
  int64_t wanted_bytes = 0, device_free_bytes = -1;
  int64_t reserved_bytes = 0, allocated_bytes = 0;
  int64_t free_bytes = 0, largest_free_bytes = 0;  // in the cache, of the stream that asked
  OomReason reason = OomReason::kUnknown;
};

struct AllocatorReplay {
  std::vector<AllocatorSum> sums;       // by device
  std::vector<AllocatorLife> lives;     // in order of allocation; those from before the history first
  std::vector<AllocatorOom> ooms;       // in order
  std::vector<int64_t> held, reserved;  // by event, after it, of its device
  int64_t unmatched_frees = 0;          // of memory that was allocated before the history
  int64_t unlike = 0;                   // bytes held at the end that the events do not explain, or that they miss
};

// O(events · log blocks), and the blocks once more for each out-of-memory.
AllocatorReplay replay_allocator(const AllocatorSnapshot& all);

}  // namespace stageline
