// A snapshot of PyTorch's caching allocator (torch.cuda.memory._dump_snapshot): its segments and blocks, and the
// recorded history of its actions.
#pragma once

#include "base/string_pool.h"

namespace stageline {

enum class AllocatorAction : uint8_t {
  kAlloc,
  kFreeRequested,  // the program gave the block back; kernels on other streams may still use it
  kFreeCompleted,  // the block may be given out again; files of older versions call this "free"
  kSegmentAlloc,   // memory was taken from the device
  kSegmentFree,
  kSegmentMap,  // memory was mapped into an expandable segment
  kSegmentUnmap,
  kSnapshot,
  kOutOfMemory,
  kOther,
};

struct AllocatorEvent {
  int64_t time_ns = 0;
  uint64_t address = 0;
  int64_t bytes = 0;
  // For kOutOfMemory only: the free bytes of the device; −1 when the file does not record them.
  int64_t device_free = -1;
  int64_t stream = 0;
  int32_t device = 0;
  AllocatorAction action = AllocatorAction::kOther;
  StringId stack = 0;     // the frames, innermost first, with ";" between
  StringId category = 0;  // "parameter", "activation", …; 0 when the file does not say
};

// kAwaitingFree: freed by the program, but a stream may still use it.
enum class BlockState : uint8_t { kInactive, kActive, kAwaitingFree };

struct AllocatorBlock {
  uint64_t address = 0;
  int64_t bytes = 0, requested = 0;
  BlockState state = BlockState::kInactive;
  StringId stack = 0;
};

struct AllocatorSegment {
  uint64_t address = 0;
  int64_t bytes = 0, allocated = -1, active = -1;  // as in the snapshot; −1 when the snapshot does not record it
  int64_t stream = 0;
  int32_t device = 0;
  bool is_large = false, is_expandable = false;
  StringId pool = 0;  // "(0, 0)" for the default pool; CUDA graphs and private pools have other ids
  StringId stack = 0;
  uint32_t first_block = 0, block_count = 0;  // the segment's blocks, as positions in AllocatorSnapshot::blocks
};

struct AllocatorSnapshot {
  std::vector<AllocatorEvent> events;  // device after device, each in the order in which it happened
  std::vector<AllocatorSegment> segments;
  std::vector<AllocatorBlock> blocks;
  bool empty() const { return events.empty() && segments.empty(); }
};

}  // namespace stageline
