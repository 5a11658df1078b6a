// The individual slices of a stretch of time, for those wide enough to be drawn one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/http/query.h"
#include "server/timeline/timeline.h"

namespace stageline {

inline constexpr int64_t kMaxSlices = 200'000;  // of one answer
inline constexpr size_t kMaxNameBytes = 256;    // of a name in a table of names; longer ones are cut

struct SliceRow {
  uint32_t lane = 0, slice = 0;
  uint8_t row = 0;
};

// Slices that touch [t0, t1) and last at least min_ns, sorted by lane, row and start; at most `limit`. Where there are
// more, min_ns is raised to a power of two at which they fit, so that the longest ones are kept.
struct SliceWindow {
  std::vector<SliceRow> slices;
  int64_t min_ns = 0;    // after it was raised
  bool complete = true;  // min_ns was not raised, and nothing was cut
};
SliceWindow slices_within(const Timeline& timeline, const std::vector<uint32_t>& lanes, const TimeWindow& window,
                          int64_t min_ns, size_t limit);

// Columns of slices and the names that occur in them, as /api/slices and /api/histogram send them.
std::string slices_wire(const Timeline& timeline, const SliceWindow& window);

// The answer to /api/slices. Errors: kUsage.
Result<std::string> slices_answer(const Timeline& timeline, const Query& query);

// A text cut to kMaxNameBytes at the end of a character; valid UTF-8.
std::string short_name(std::string_view text);

}  // namespace stageline
