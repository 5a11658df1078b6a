// Walks over slices of a lane in the lane's own order, by start, and knows which slice encloses each. It finds rows as
// row_index.cc did when it laid them out, so it reads the columns from front to back and looks nothing up.
#pragma once

#include "server/timeline/row_index.h"

namespace stageline {

class LaneWalk {
 public:
  static constexpr uint32_t kNoTag = RowFinder::kNoTag;

  // Begins before slice `from`; tag_of(slice) gives the tag by which holders are reported. O(rows · log slices).
  template <class TagOf>
  LaneWalk(const ViewLane& lane, size_t from, TagOf tag_of)
      // In a lane with a single row, that row has both ranges and work.
      : lane_(lane), next_(from), has_ranges_(lane.type == ViewLaneType::kStream && lane.rows.size() > 1),
        work_(0, nests(lane, 0), overlap_of(lane)), ranges_(lane.range_row, true, overlap_of(lane)) {
    // Open slices are among the last ones of the rows.
    std::vector<std::pair<size_t, size_t>> last;  // slice, row
    for (size_t r = 0; from > 0 && r < lane.rows.size(); ++r)
      if (const size_t position = first_slice_from(lane.rows[r], from); position > 0)
        last.emplace_back(lane.rows[r].slice_at(position - 1), r);
    std::ranges::sort(last);
    for (const auto& [slice, row] : last) {
      RowFinder& rows = rows_of(slice);
      rows.find(lane.start(slice), lane.end(slice));
      rows.put(row, lane.start(slice), lane.end(slice), tag_of(slice));
    }
  }

  // Calls tag = visit(slice, start, dur, tag of the holder or kNoTag) for the slices before `to` that have a row.
  template <class Visit> void until(size_t to, Visit visit) {
    for (; next_ < to; ++next_) {
      const int64_t start = lane_.start(next_), dur = lane_.dur(next_), end = start + dur;
      RowFinder& rows = rows_of(next_);
      const size_t row = rows.find(start, end);
      if (row >= kMaxRowsOfLane) continue;
      rows.put(row, start, end, visit(next_, start, dur, rows.holder()));
    }
  }

 private:
  RowFinder& rows_of(size_t slice) {
    const bool is_range = has_ranges_ && lane_.kind(slice) == static_cast<uint8_t>(ViewKind::kAnnotation);
    return is_range ? ranges_ : work_;
  }
  const ViewLane& lane_;
  size_t next_;
  bool has_ranges_;
  RowFinder work_, ranges_;
};

// Calls visit(slice, duration) for the slices [from, to) of a lane that have a row, in order.
template <class Visit> void for_durations(const ViewLane& lane, size_t from, size_t to, Visit visit) {
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
