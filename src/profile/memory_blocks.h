// Blocks of memory of one rank, from its [memory] records: an allocation and the free of the same address.
//
//   records   +512 @a   +64 @b   −512 @a            −32 @c
//   blocks    a: 512 B, two times     b: 64 B, never freed     c: 32 B, there before the capture
//
// Addresses are of one device; torch's own view (--compat tb) takes them as of all. A record without an address
// (traces of torch 1.9 and before) is an allocation that is never freed, or a free of something unknown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"

namespace stageline {

struct MemoryDevice {
  int32_t type = 0, id = -1;  // c10's numbers
  auto operator<=>(const MemoryDevice&) const = default;
};
// "CPU", "GPU 0", "XPU 1", "MTIA 0", "device type 9, 0"
std::string memory_device_name(MemoryDevice device);

struct MemoryBlock {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t allocated = kNone;  // record of the allocation; none: before the capture
  uint32_t freed = kNone;      // record of the free; none: not within the capture
  int64_t bytes = 0;           // above 0
  bool lost_free = false;      // its address was allocated again although no free was recorded
};

struct MemoryHistory {
  static constexpr size_t kMostDevices = 64;  // of one rank; tables have a pass each

  std::vector<uint32_t> by_time;              // indexes of Part::memory that say something, by time, then file order
  std::vector<MemoryBlock> blocks;            // in the order of by_time: at the allocation, else at the free
  std::vector<uint32_t> block_of;             // by record: its block; kNone of records left out
  std::vector<MemoryDevice> devices;          // that have records, ascending; at most kMostDevices
  int64_t more_devices = 0;                   // records of devices beyond these, left out
  int64_t without_address = 0;                // records
  int64_t without_size = 0;                   // records of 0 bytes, left out
  int64_t lost_frees = 0, unknown_frees = 0;  // blocks with lost_free; with neither allocation nor another free of it
};

// O(records · log records).
MemoryHistory memory_history(const Part& part);

// By record of Part::memory: the innermost host slice open on the record's thread; kNoSliceIndex.
std::vector<uint32_t> slices_of_memory(const Part& part);

MemoryDevice device_of(const MemoryRecord& record);
// Bytes of a record, cut at ±2^60; sums of them stop at the ends of 64 bits, so that no damaged size wraps around.
int64_t bytes_of(const MemoryRecord& record);
inline void add_saturated(int64_t& sum, int64_t bytes) {
  if (__builtin_add_overflow(sum, bytes, &sum)) sum = bytes > 0 ? INT64_MAX : INT64_MIN + 1;
}

}  // namespace stageline
