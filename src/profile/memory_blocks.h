// Makes blocks of memory from the [memory] records of one rank: an allocation, and the free of the same address.
//
//   records   +512 @a   +64 @b   −512 @a            −32 @c
//   blocks    a: 512 B, two times     b: 64 B, never freed     c: 32 B, there before the capture
//
// Addresses count per device; a record without an address (traces of torch 1.9 and before) is an allocation that
// is never freed, or a free of something unknown.
#pragma once

#include "profile/torch_view.h"

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

// Returns the most bytes that the framework had allocated on a device of this rank; −1 where nothing says it. They come
// from torch's [memory] events with totals, Ascend's memory tables, and counters of a program that have the names of
// torch's functions, memory_allocated or max_memory_allocated. O(records).
int64_t peak_device_memory(const Part& part);

// Returns for each stage the largest peak of its ranks; −1 where none is known. Empty where no rank has any.
std::vector<int64_t> peak_memory_of_stages(const Trace& trace);

// torch.profiler._memory_profiler's categories, in its order.
enum class MemoryClass : uint8_t {
  kParameter,
  kOptimizerState,
  kInput,
  kTemporary,
  kActivation,
  kGradient,
  kAutogradDetail,
  kNotKnown
};
inline constexpr size_t kMemoryClasses = 8;
inline constexpr ByEnum<MemoryClass, const char*, kMemoryClasses> kMemoryClassNames = {
    {"parameter", "optimizer_state", "input", "temporary", "activation", "gradient", "autograd_detail", "unknown"}};

struct MemoryClasses {
  std::vector<MemoryClass> of_block;         // index: MemoryHistory::blocks
  std::vector<uint32_t> operator_of_record;  // for each record: the innermost operator, or kNoSliceIndex
  std::vector<uint32_t> slice_of_record;     // for each record: the innermost slice, or kNoSliceIndex
};

// Rules: docs/analyses/memory-categories.md. O(slices + records · log records).
MemoryClasses classify_memory(const Trace& trace, const Part& part, const MemoryHistory& history);

// Bytes of every class at one time.
struct MemoryClassPoint {
  int64_t time_ns = 0;  // from the run's zero
  ByEnum<MemoryClass, int64_t, kMemoryClasses> bytes{};
  int64_t total() const;
};

struct MemoryClassSeries {
  std::vector<MemoryClassPoint> points;  // one for each record of the device
  MemoryClassPoint peak;
  size_t peak_record = 0;    // index into MemoryHistory::by_time of the record at the peak
  int64_t before_bytes = 0;  // held before the capture, according to the allocator's own total
};
MemoryClassSeries memory_class_series(const Part& part, const MemoryHistory& history, const MemoryClasses& classes,
                                      MemoryDevice device, int64_t zero_ns);

// The facts from which tb-memory makes its tables.
struct MemoryOperator {  // one for each device and operator name
  MemoryDevice device;
  StringId name = 0;
  int64_t calls = 0;
  int64_t increase = 0, self_increase = 0;        // bytes; frees are counted as negative
  int64_t allocations = 0, self_allocations = 0;  // number of records above 0 bytes
  int64_t allocated = 0, self_allocated = 0;      // the bytes of those records
};

struct MemoryEvent {
  MemoryDevice device;
  std::string operator_name;
  int64_t bytes = 0;
  int64_t allocated_ns = kNullTime, freed_ns = kNullTime;  // from the run's zero
  static constexpr int64_t kNullTime = INT64_MIN;
};

struct MemoryPoint {
  int64_t time_ns = 0, allocated = 0, reserved = 0;  // bytes; `reserved` is −1 when it was not recorded
};
struct MemoryCurve {
  MemoryDevice device;
  std::vector<MemoryPoint> points;  // one for each change
  size_t peak = 0;                  // index of the first point with the highest value
  bool recorded = true;             // false: the curve is a sum of the records' sizes, beginning at 0
};

struct MemoryAnswer {
  int32_t rank = 0;
  std::vector<MemoryCurve> curves;  // ascending by device
  std::vector<MemoryEvent> events;
  std::vector<MemoryOperator> operators;  // by device, then descending by self_allocated
  MemoryHistory history;
  int64_t outside = 0;  // number of records that are within no operator
};

// Uses the records that --range and --steps leave.
MemoryAnswer memory_answer(const TorchRun& run, size_t part);

}  // namespace stageline
