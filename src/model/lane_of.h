// Which lane of a part holds a slice: lanes stand one after another in the slices.
#pragma once

#include <algorithm>
#include <cstddef>

#include "model/trace.h"

namespace stageline {

// Returns the lane's index; SIZE_MAX when none holds the slice. O(log lanes).
inline size_t lane_of(const Part& part, size_t slice) {
  const auto at = std::ranges::upper_bound(part.lanes, slice, {}, &Lane::end);
  return at == part.lanes.end() || slice < at->begin ? SIZE_MAX : static_cast<size_t>(at - part.lanes.begin());
}

}  // namespace stageline
