// What both modes of tb-memory make their tables of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/memory_blocks.h"
#include "profile/torch_view.h"

namespace stageline {

struct MemoryOperator {  // of one device and operator name
  MemoryDevice device;
  StringId name = 0;
  int64_t calls = 0;
  int64_t increase = 0, self_increase = 0;        // bytes, frees counted
  int64_t allocations = 0, self_allocations = 0;  // records above 0 bytes
  int64_t allocated = 0, self_allocated = 0;      // their bytes
};

struct MemoryEvent {
  MemoryDevice device;
  std::string operator_name;
  int64_t bytes = 0;
  int64_t allocated_ns = kNullTime, freed_ns = kNullTime;  // from the run's zero
  static constexpr int64_t kNullTime = INT64_MIN;
};

struct MemoryPoint {
  int64_t time_ns = 0, allocated = 0, reserved = 0;  // bytes; reserved −1: not recorded
};
struct MemoryCurve {
  MemoryDevice device;
  std::vector<MemoryPoint> points;  // a change each
  size_t peak = 0;                  // the first of the highest
  bool recorded = true;             // false: sums of the sizes, from 0
};

struct MemoryAnswer {
  int32_t rank = 0;
  std::vector<MemoryCurve> curves;  // devices ascending
  std::vector<MemoryEvent> events;
  std::vector<MemoryOperator> operators;  // by device, then self allocated descending (compatible: by name)
  MemoryHistory history;
  int64_t outside = 0;  // records within no operator
};

// Of the records that --range and --steps leave.
MemoryAnswer exact_memory(const TorchRun& run, size_t part);
// The plugin's: docs/analyses/tb-memory.md lists what differs.
MemoryAnswer plugin_memory(const TorchRun& run, size_t part);

// Curves by device. `plugin`: only records with an address and totals.
std::vector<MemoryCurve> memory_curves(const Part& part, const MemoryHistory& history, int64_t zero_ns, bool plugin);

}  // namespace stageline
