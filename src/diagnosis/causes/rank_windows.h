// Stretches of time on single ranks, and what was recorded in them. Part of causes.
#pragma once

#include "model/trace.h"

namespace stageline {

// A stretch of time on a rank, by its own clock.
struct RankWindow {
  int32_t part;
  int64_t from_ns, to_ns;
};

// Returns the name that fills at least half of these windows' time, "" if none does. Rows of kind "other" come first,
// then the innermost call or range of a profile there, with its line of the program. Takes O((cells + slices) log
// windows).
std::string name_that_fills(const Trace& trace, std::vector<RankWindow> windows);

}  // namespace stageline
