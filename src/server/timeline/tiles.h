// Tiles: for every column of pixels of a row, the share that each kind is busy. Prefix sums make them exact at any
// zoom.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/http/query.h"
#include "server/timeline/timeline.h"

namespace stageline {

struct KindCoverage {
  uint8_t kind = 0;
  std::vector<uint8_t> share;  // for each column, in 255ths
};

// Returns the coverage of a window that is cut into `columns` equal columns. The rounding error of a column is given to
// the next one. So the sum over any run of columns is exact within half of 1/255 of a column at either end. Kinds that
// are not busy in the window are omitted. O(columns · log slices), never O(slices).
std::vector<KindCoverage> row_coverage(const ViewLane& lane, const ViewRow& row, const TimeWindow& window,
                                       size_t columns);

// The answer to /api/tiles. Errors: kUsage; kLimit for more than kMaxTileBytes.
inline constexpr size_t kMaxTileColumns = 16384;
inline constexpr size_t kMaxTileBytes = size_t{1} << 26;
Result<std::string> tiles_answer(const Timeline& timeline, const Query& query);

}  // namespace stageline
