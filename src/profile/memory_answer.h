// The facts from which tb-memory makes its tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/memory_blocks.h"
#include "profile/torch_view.h"

namespace stageline {

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
