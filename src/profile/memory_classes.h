// Estimates the purpose of a block of memory, from the operator that allocated it, the time, and its lifetime.
#pragma once

#include <cstdint>
#include <vector>

#include "base/by_enum.h"
#include "model/trace.h"
#include "profile/memory_blocks.h"

namespace stageline {

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
  size_t peak_record = 0;    // number of records of MemoryHistory::by_time up to the peak
  int64_t before_bytes = 0;  // held before the capture, according to the allocator's own total
};
MemoryClassSeries memory_class_series(const Part& part, const MemoryHistory& history, const MemoryClasses& classes,
                                      MemoryDevice device, int64_t zero_ns);

}  // namespace stageline
