// Walks over slices of a lane in the lane's own order, by start, and knows which slice encloses each.
//
// Rows are laid out in that order (row_index.cc): a slice goes into the first row that is free at its start. So the
// walk finds each slice's row from the ends of the slices that are open, without looking it up, and reads the columns
// from front to back. The slice that encloses another one is in the nearest row above in which one reaches as far.
// Cells enclose nothing: the cell in the row below another ran in parallel, as the backward of an overlapped F&B.
#pragma once

#include <vector>

#include "server/timeline/row_index.h"

namespace stageline {

class LaneWalk {
 public:
  static constexpr uint32_t kNoTag = UINT32_MAX;

  // Begins before slice `from`; tag_of(slice) gives the tag by which holders are reported. O(rows · log slices).
  template <class TagOf>
  LaneWalk(const ViewLane& lane, size_t from, TagOf tag_of) : lane_(lane), next_(from), open_(lane.rows.size()) {
    for (size_t r = 0; from > 0 && r < open_.size(); ++r) {
      const size_t position = first_slice_from(lane.rows[r], from);
      if (position == 0) continue;
      const size_t last = lane.rows[r].slice_at(position - 1);
      open_[r] = {lane.end(last), tag_of(last)};
    }
  }

  // Calls tag = visit(slice, start, dur, tag of the holder or kNoTag) for the slices before `to` that have a row.
  template <class Visit>
  void until(size_t to, Visit visit) {
    // In a lane with a single row, that row has both ranges and work.
    const bool is_stream = lane_.type == ViewLaneType::kStream && lane_.rows.size() > 1;
    for (; next_ < to; ++next_) {
      const int64_t start = lane_.start(next_), dur = lane_.dur(next_), end = start + dur;
      const bool is_range = is_stream && lane_.kind(next_) == static_cast<uint8_t>(ViewKind::kAnnotation);
      const size_t top = is_range ? lane_.range_row : 0, rows = is_range ? open_.size() : lane_.range_row;
      size_t r = top;
      while (r < rows && open_[r].end_ns > start) ++r;
      if (r >= rows) continue;  // nested deeper than rows are drawn
      uint32_t holder = kNoTag;
      for (size_t above = lane_.cells ? top : r; above-- > top && holder == kNoTag;)
        if (open_[above].end_ns >= end) holder = open_[above].tag;
      open_[r] = {end, visit(next_, start, dur, holder)};
    }
  }

 private:
  struct Open {
    int64_t end_ns = -1;
    uint32_t tag = kNoTag;
  };
  const ViewLane& lane_;
  size_t next_;
  std::vector<Open> open_;  // for each row, the slice that began last
};

// Calls visit(slice, duration) for the slices [from, to) of a lane that have a row, in order.
template <class Visit>
void for_durations(const ViewLane& lane, size_t from, size_t to, Visit visit) {
  if (lane.is_plain) {
    for (size_t i = from; i < to; ++i) visit(i, lane.durations[i]);
    return;
  }
  LaneWalk walk(lane, from, [](size_t) { return LaneWalk::kNoTag; });
  walk.until(to, [&](size_t i, int64_t, int64_t dur, uint32_t) {
    visit(i, dur);
    return LaneWalk::kNoTag;
  });
}

}  // namespace stageline
