// Sums up a snapshot of PyTorch's allocator: its state at the snapshot, at every instant before (events are undone from
// the end), and the reason why memory ran out.
//
//   snapshot   blocks and segments as they are at the end
//   backwards an allocation is taken away again, a completed free put back: the state at any event.
//
// Sums are those of torch's own _memory_viz.segsum: reserved = allocated + free internal + free external.
#pragma once

#include "model/trace.h"

namespace stageline {

struct AllocatorSum {  // sums for one device
  int32_t device = 0;
  int64_t segments = 0, blocks = 0;
  int64_t reserved_bytes = 0;
  int64_t allocated_bytes = 0;      // bytes that were asked for, in active blocks
  int64_t free_internal_bytes = 0;  // bytes that rounding added to the active blocks
  int64_t free_external_bytes = 0;  // bytes in blocks that are not active, including those that wait for a stream
  int64_t awaiting_bytes = 0;       // those of them that wait for a stream
  int64_t largest_free_bytes = 0;   // size of the largest inactive block
  // Inactive blocks of segments that hold others too: of segments that hold nothing, all memory can be given back.
  int64_t pieces_bytes = 0, largest_piece_bytes = 0;
  int64_t sparse_segments = 0, sparse_bytes = 0;  // segments of which less than a tenth is active
  int64_t events = 0, allocations = 0, frees = 0, ooms = 0;
  // The maximum held at once, counting until frees are complete; −1 without events.
  int64_t peak_bytes = 0, peak_ns = 0;
  int64_t peak_reserved_bytes = 0;
};

// An allocation that existed at some time of the history or at its end. kNone stands for "before the history" or "still
// held".
struct AllocatorLife {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t allocated = kNone, freed = kNone;  // indices of events
  uint32_t block = kNone;                     // index into AllocatorSnapshot::blocks, for what is held at the end
  int32_t device = 0;
  int64_t bytes = 0;
};

enum class OomReason : uint8_t {
  kFull,        // the memory of the allocator is in use, and the device has too little left
  kFragmented,  // enough is free in the cache, but in pieces that are too small
  kSplit,       // enough is free in all, but part of it in the cache and part on the device
  kElsewhere,   // a free piece was large enough, but of another pool or kind, or a limit forbade it
  kUndecided,   // the history does not say enough
};
const char* oom_reason_name(OomReason reason);

struct AllocatorOom {
  uint32_t event = 0;
  int32_t device = 0;
  int64_t wanted_bytes = 0, device_free_bytes = -1;
  int64_t reserved_bytes = 0, allocated_bytes = 0;
  int64_t free_bytes = 0, largest_free_bytes = 0;  // in what the request could use
  OomReason reason = OomReason::kUndecided;
};

struct AllocatorReplay {
  std::vector<AllocatorSum> sums;       // for each device
  std::vector<AllocatorLife> lives;     // in order of allocation; those from before the history come first
  std::vector<AllocatorOom> ooms;       // in order of time
  std::vector<int64_t> held, reserved;  // for each event, what its device held after it
  int64_t unlike = 0;  // bytes held at the end that events do not explain, or that events left and the end lacks
};

// O(events · log blocks), and each out-of-memory event goes through all blocks once more.
AllocatorReplay replay_allocator(const AllocatorSnapshot& all);

}  // namespace stageline
