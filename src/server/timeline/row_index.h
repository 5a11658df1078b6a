// The rows of a lane, and questions to them that binary search answers.
#pragma once

#include "server/timeline/view_lane.h"

namespace stageline {

// Finds the rows of slices that come in a lane's order. Slices nest by containment: a slice is enclosed by the latest
// one before it that has not ended at its start and ends no earlier (as in relate_slices of readers/common). A slice
// goes into the first row below that one, or from the top on, that is free at its start.
//
//   row 0   [ step ─────────────────────────────]
//   row 1     [ mm ──────][ add ───]  [ relu ──]       add begins 30 ns before mm ends: still one row
//   row 2       [ launch ]  [ launch ]
//
// A slice for which every row is taken counts as absent: it encloses nothing.
class RowFinder {
 public:
  static constexpr uint32_t kNoTag = UINT32_MAX;
  RowFinder(size_t top, bool nests, int64_t overlap_ns) : top_(top), nests_(nests), overlap_ns_(overlap_ns) {}

  // The row of the next slice, kMaxRowsOfLane where there is none. O(1), and O(rows) where slices overlap.
  size_t find(int64_t start_ns, int64_t end_ns) {
    kept_ = open_.size();
    while (kept_ > 0 && (open_[kept_ - 1].end_ns <= start_ns || open_[kept_ - 1].end_ns < end_ns)) --kept_;
    size_t row = kept_ > 0 ? open_[kept_ - 1].row + 1 : top_;
    while (row - top_ < rows_.size() && !is_free(rows_[row - top_], start_ns, end_ns)) ++row;
    return row;
  }
  uint32_t holder() const { return kept_ > 0 ? open_[kept_ - 1].tag : kNoTag; }  // of the slice that was found
  // Puts the slice that was found into its row; returns whether it overlaps with the one before it there.
  bool put(size_t row, int64_t start_ns, int64_t end_ns, uint32_t tag) {
    open_.resize(kept_);
    if (nests_) open_.push_back({end_ns, row, tag});
    if (row - top_ >= rows_.size()) rows_.resize(row - top_ + 1);
    const bool overlaps = rows_[row - top_].end_ns > start_ns;
    rows_[row - top_] = {start_ns, end_ns};
    return overlaps;
  }
  size_t end_row() const { return top_ + rows_.size(); }

 private:
  struct Last {
    int64_t start_ns = -1, end_ns = -1;
  };
  struct Open {
    int64_t end_ns;
    size_t row;
    uint32_t tag;
  };
  bool is_free(const Last& last, int64_t start_ns, int64_t end_ns) const {
    return last.end_ns <= start_ns ||
           (last.end_ns - start_ns < overlap_ns_ && last.start_ns < start_ns && last.end_ns < end_ns);
  }
  size_t top_;
  bool nests_;
  int64_t overlap_ns_;
  size_t kept_ = 0;         // how many of the open slices enclose the one that was found
  std::vector<Last> rows_;  // for each row from the top on, the slice that began last
  std::vector<Open> open_;  // each encloses the next
};

// Lays the slices of a lane out in rows and makes the rows' checkpoints.
void build_rows_of(ViewLane& lane);

// Returns how long the slice at a position of its row is drawn.
inline int64_t drawn_ns(const ViewLane& lane, const ViewRow& row, size_t position) {
  const size_t i = row.slice_at(position);
  if (row.clipped == 0 || position + 1 == row.count) return lane.dur(i);
  return std::min(lane.dur(i), lane.start(row.slice_at(position + 1)) - lane.start(i));
}

// In a row: the first position whose slice ends after t, and the first whose slice starts at or after t; row.count
// where there is none. O(log slices).
size_t first_ending_after(const ViewLane& lane, const ViewRow& row, int64_t t_ns);
size_t first_starting_from(const ViewLane& lane, const ViewRow& row, int64_t t_ns);

using KindSums = std::array<int64_t, kViewKindCount>;
// Adds to `sums` the drawn time of each kind (in the order of ViewRow::kinds) of the whole slices at positions
// [from, to) of a row. O(kBlock · 2 + kinds).
void add_busy(const ViewLane& lane, const ViewRow& row, size_t from, size_t to, KindSums& sums);

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

// Cells and a stream's work overlap each other and enclose nothing; ranges on a stream enclose ranges.
inline bool nests(const ViewLane& lane, size_t row) {
  return lane.type == ViewLaneType::kThread || (lane.type == ViewLaneType::kStream && row >= lane.range_row);
}
inline int64_t overlap_of(const ViewLane& lane) { return lane.cells ? 0 : kOverlapNs; }
// The slice that encloses the one at `place`; SIZE_MAX: none. O(rows · log slices).
size_t enclosing_slice(const ViewLane& lane, PlaceInRow place);

}  // namespace stageline
