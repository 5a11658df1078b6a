#include "profile/peak_memory.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "profile/memory_blocks.h"

namespace stageline {
namespace {

constexpr double kMaxBytes = 1e18;  // larger ones are damaged

bool is_allocated_bytes(std::string_view counter) {
  // totalAllocated: a column of Ascend's MEMORY_RECORD.
  return counter.ends_with("memory_allocated") || counter.ends_with("/ totalAllocated");
}

}  // namespace

int64_t peak_device_memory(const Part& part) {
  int64_t peak = -1;
  for (const MemoryRecord& record : part.memory)
    if (device_of(record).type != 0) peak = std::max(peak, record.total_allocated);
  for (const CounterSeries& counter : part.counters)
    for (const double bytes : counter.value)
      if (is_allocated_bytes(counter.name) && bytes > 0 && bytes < kMaxBytes)
        peak = std::max<int64_t>(peak, std::llround(bytes));
  return peak;
}

std::vector<int64_t> peak_memory_of_stages(const Trace& trace) {
  std::vector<int64_t> peaks;
  for (const Part& part : trace.parts) {
    const int64_t peak = peak_device_memory(part);
    if (peak < 0 || part.stage < 0) continue;
    if (peaks.size() <= static_cast<size_t>(part.stage)) peaks.resize(part.stage + 1, -1);
    peaks[part.stage] = std::max(peaks[part.stage], peak);
  }
  return peaks;
}

}  // namespace stageline
