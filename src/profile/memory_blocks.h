// Makes blocks of memory from the [memory] records of one rank: an allocation, and the free of the same address.
//
//   records   +512 @a   +64 @b   −512 @a            −32 @c
//   blocks    a: 512 B, two times     b: 64 B, never freed     c: 32 B, there before the capture
//
// Addresses count per device; a record without an address (traces of torch 1.9 and before) is an allocation that
// is never freed, or a free of something unknown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"

namespace stageline {

struct MemoryDevice {
  int32_t type = 0, id = -1;  // numbers of c10
  auto operator<=>(const MemoryDevice&) const = default;
};
// Returns "CPU", "GPU 0", "XPU 1", "MTIA 0" or "device type 9, 0".
std::string memory_device_name(MemoryDevice device);

struct MemoryBlock {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t allocated = kNone;  // record of the allocation; kNone when it was before the capture
  uint32_t freed = kNone;      // record of the free; kNone when it was not within the capture
  int64_t bytes = 0;           // above 0
  bool lost_free = false;      // its address was allocated again although no free had been recorded
};

struct MemoryHistory {
  static constexpr size_t kMaxDevices = 64;  // limit for one rank, since tables need a pass for each device

  std::vector<uint32_t> by_time;      // indices of Part::memory that say something, by time, then file order
  std::vector<MemoryBlock> blocks;    // in the order of by_time, at their allocation or else at their free
  std::vector<uint32_t> block_of;     // for each record its block; kNone for records that are left out
  std::vector<MemoryDevice> devices;  // devices with records, ascending; at most kMaxDevices
  int64_t more_devices = 0;           // records of further devices, which are left out
  int64_t without_address = 0;        // number of records without an address
  int64_t lost_frees = 0;             // number of blocks with lost_free
};

// O(records · log records).
MemoryHistory memory_history(const Part& part);

// Returns for each record of Part::memory the innermost host slice open on the record's thread; kNoSliceIndex when
// there is none.
std::vector<uint32_t> slices_of_memory(const Part& part);

MemoryDevice device_of(const MemoryRecord& record);
// Returns the bytes of a record, limited to ±2^60. Sums of these stop at the limits of 64 bits, so that no damaged size
// wraps around.
int64_t bytes_of(const MemoryRecord& record);
inline void add_saturated(int64_t& sum, int64_t bytes) {
  if (__builtin_add_overflow(sum, bytes, &sum)) sum = bytes > 0 ? INT64_MAX : INT64_MIN + 1;
}

// The largest amount of device memory that a recording shows for each stage of a pipeline.

// Returns the most bytes that the framework had allocated on a device of this rank; −1 where nothing says it. They come
// from torch's [memory] events with totals, Ascend's memory tables, and counters of a program that have the names of
// torch's functions, memory_allocated or max_memory_allocated. O(records).
int64_t peak_device_memory(const Part& part);

// Returns for each stage the largest peak of its ranks; −1 where none is known. Empty where no rank has any.
std::vector<int64_t> peak_memory_of_stages(const Trace& trace);

}  // namespace stageline
