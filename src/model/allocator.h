// What PyTorch's caching allocator says of itself (torch.cuda.memory._dump_snapshot): its segments and blocks at the
// moment of the snapshot, and what it did before, as far back as its history was kept.
#pragma once

#include <cstdint>
#include <vector>

#include "base/string_pool.h"

namespace stageline {

enum class AllocatorAction : uint8_t {
  kAlloc,
  kFreeRequested,  // the program gave it back; streams may still use it
  kFreeCompleted,  // it may be given out again ("free" in old files)
  kSegmentAlloc,   // memory taken from the device
  kSegmentFree,
  kSegmentMap,  // the same of an expandable segment
  kSegmentUnmap,
  kSnapshot,
  kOutOfMemory,
  kOther,
};

struct AllocatorEvent {
  int64_t time_ns = 0;
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t device_free = -1;  // of kOutOfMemory: what the device still had; −1: not said
  int64_t stream = 0;
  int32_t device = 0;
  AllocatorAction action = AllocatorAction::kOther;
  StringId stack = 0;     // frames with ; between, innermost first
  StringId category = 0;  // "parameter", "activation", …; 0: not said
};

enum class BlockState : uint8_t { kInactive, kActive, kAwaitingFree };  // allocated; freed, and waiting for a stream

struct AllocatorBlock {
  uint64_t address = 0;
  int64_t bytes = 0, requested = 0;
  BlockState state = BlockState::kInactive;
  StringId stack = 0;
};

struct AllocatorSegment {
  uint64_t address = 0;
  int64_t bytes = 0, allocated = -1, active = -1;  // as it says; −1: not said
  int64_t stream = 0;
  int32_t device = 0;
  bool is_large = false, is_expandable = false;
  StringId pool = 0;  // "(0, 0)": of all but CUDA graphs and private pools
  StringId stack = 0;
  uint32_t first_block = 0, block_count = 0;  // into AllocatorSnapshot::blocks
};

struct AllocatorSnapshot {
  std::vector<AllocatorEvent> events;  // by device, in their own order
  std::vector<AllocatorSegment> segments;
  std::vector<AllocatorBlock> blocks;
  bool empty() const { return events.empty() && segments.empty(); }
};

}  // namespace stageline
