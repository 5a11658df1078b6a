// Reads the forward and backward ranges of one rank with their time on the device, as msprof-analyze's query returns
// them: MSTX_EVENTS ⋈ TASK on connectionId, kept by what the message contains. Each table is read once, and joined by
// hashing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/sqlite_db.h"

namespace stageline {

struct DeviceRange {
  int64_t start_ns = 0, end_ns = 0;
  int64_t step = 0;       // STEP_TIME.id; 0 when the database has no such table
  bool has_step = false;  // the range lies inside a step, or there is no such table
  bool forward = false;   // the message contains "forward"
};

// A stretch of time on the host, with both ends included.
struct HostWindow {
  int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;
};

struct DeviceRanges {
  std::vector<DeviceRange> rows;  // ordered by start on the device
  std::string missing;  // what the database lacks, "MSTX_EVENTS" or "TASK.connectionId"; then there are no rows
};

// A message counts when it contains "forward", "backward", or "WeightGradStore", any character and "pop", in upper or
// lower case. `pops` restricts pops to those that the host opened in that time. A range inside two steps occurs twice,
// and one with several tasks several times. Errors: kBadInput for a damaged page, kLimit above kMaxDeviceRanges rows.
// O(rows · log), or more where overlapping steps multiply rows.
inline constexpr size_t kMaxDeviceRanges = 10'000'000;
Result<DeviceRanges> read_device_ranges(const SqliteDb& db, const HostWindow& pops);

// Returns the time of a step on the host; nullopt without STEP_TIME or without such a step.
std::optional<HostWindow> window_of_step(const SqliteDb& db, int64_t step);

}  // namespace stageline
