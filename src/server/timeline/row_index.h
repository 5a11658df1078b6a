// The rows of a lane, and questions to them that binary search answers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "server/timeline/view_lane.h"

namespace stageline {

// Lays the slices of a lane out in rows and makes the rows' checkpoints. A slice goes into the first row that is free
// at its start, so a nested slice is one row below the one that holds it. O(slices · rows in use).
void build_rows_of(ViewLane& lane);

// In a row: the first position whose slice ends after t, and the first whose slice starts at or after t; row.count
// where there is none. O(log slices).
size_t first_ending_after(const ViewLane& lane, const ViewRow& row, int64_t t_ns);
size_t first_starting_from(const ViewLane& lane, const ViewRow& row, int64_t t_ns);

// Adds to `sums` the time of each kind (in the order of ViewRow::kinds) of the whole slices at positions [from, to) of
// a row. O(kBlock · 2 + kinds).
using KindSums = std::array<int64_t, kViewKindCount>;
void add_busy(const ViewLane& lane, const ViewRow& row, size_t from, size_t to, KindSums& sums);

// The time within [t0, t1) in which the row is busy, with any kind. O(log slices).
int64_t busy_within(const ViewLane& lane, const ViewRow& row, int64_t t0_ns, int64_t t1_ns);

// The first slice of the lane, in any row, that starts at or after t. O(log slices).
size_t first_starting_from(const ViewLane& lane, int64_t t_ns);
// In a row: the first position whose slice is this one or a later one. O(log slices).
size_t first_slice_from(const ViewRow& row, size_t slice);

// The row and position of a slice of the lane, found in O(rows · log slices).
struct PlaceInRow {
  size_t row = SIZE_MAX, position = 0;
  explicit operator bool() const { return row != SIZE_MAX; }
};
PlaceInRow row_place(const ViewLane& lane, size_t slice);

// The first of the rows that may hold what encloses slices of `row`: ranges on a stream enclose only ranges, and cells
// enclose nothing.
inline size_t first_row_above(const ViewLane& lane, size_t row) {
  return lane.cells ? row : row >= lane.range_row ? lane.range_row : 0;
}
// The slice in a row above that encloses the whole slice at `place`; SIZE_MAX: none.
size_t enclosing_slice(const ViewLane& lane, PlaceInRow place);

}  // namespace stageline
