// Forward and backward ranges of one rank with the time they took on the device, as msprof-analyze's query gives them:
// MSTX_EVENTS ⋈ TASK on connectionId, kept by what the message contains. One scan a table and a hash join.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/sqlite_db.h"

namespace stageline {

struct DeviceRange {
  int64_t start_ns = 0, end_ns = 0;
  int64_t step = 0;       // STEP_TIME.id; 0 where the database has no such table
  bool has_step = false;  // lies inside a step, or there is no such table
  bool forward = false;   // the message contains "forward"
};

// A stretch of host time, both ends included.
struct HostWindow {
  int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;
};

struct DeviceRanges {
  std::vector<DeviceRange> rows;  // by start on the device
  std::string missing;            // "MSTX_EVENTS", "TASK.connectionId": what the database lacks; rows are empty
};

// A message counts when it contains "forward", "backward" or "WeightGradStore", one character and "pop", letters of
// either case. `pops`: only pops that the host opened then. A range inside two steps stands there twice, one with
// several tasks several times. Errors: kBadInput for a damaged page, kLimit above kMostDeviceRanges rows.
// O(rows · log), or what overlapping steps multiply.
inline constexpr size_t kMostDeviceRanges = 10'000'000;
Result<DeviceRanges> read_device_ranges(const SqliteDb& db, const HostWindow& pops);

// The host window of a step; nullopt without STEP_TIME or such a step.
std::optional<HostWindow> window_of_step(const SqliteDb& db, int64_t step);

}  // namespace stageline
