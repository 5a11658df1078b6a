// Finds which of many overlapping ranges of time an interval touches, when only one of them may count.
//
//   ranges   |------- 0 -------|      later ranges win over earlier ones
//               |-- 1 --|
//   places   . ─ . ─── . ── .         every border is a place, and every stretch between two borders
//
// Building paints the places from the last range to the first, each place once.
#pragma once

#include "model/intervals.h"

namespace stageline {

class RangeIndex {
 public:
  // Ranges must not end before they start. O(n log n).
  explicit RangeIndex(const std::vector<Interval>& ranges) {
    for (const Interval& r : ranges) {
      borders_.push_back(r.start);
      borders_.push_back(r.end);
    }
    sort_unique(borders_);
    places_ = borders_.size() * 2;
    long_.assign(places_, -1);
    std::vector<int32_t> all(places_, -1);
    paint(ranges, false, long_);
    paint(ranges, true, all);
    tree_.assign(places_ * 2, -1);
    std::ranges::copy(all, tree_.begin() + places_);
    for (size_t i = places_; i-- > 1;) tree_[i] = std::max(tree_[2 * i], tree_[2 * i + 1]);
  }

  // Returns the last range with range.start < end and start < range.end; −1 when there is none. O(log n).
  int32_t last_touched(int64_t start, int64_t end) const {
    if (borders_.empty() || end <= borders_.front() || start >= borders_.back()) return touched_point(start, end);
    if (start == end) return touched_point(start, end);
    const size_t first = start < borders_.front() ? 0 : place_after(start);
    const size_t last = end > borders_.back() ? places_ - 1 : place_before(end);
    int32_t best = -1;
    for (size_t l = first + places_, r = last + places_ + 1; l < r; l /= 2, r /= 2) {
      if (l & 1) best = std::max(best, tree_[l++]);
      if (r & 1) best = std::max(best, tree_[--r]);
    }
    return best;
  }

 private:
  size_t place_of_border(int64_t time) const {
    return static_cast<size_t>(std::ranges::lower_bound(borders_, time) - borders_.begin()) * 2;
  }
  // Return the stretch right after (before) a time within the borders.
  size_t place_after(int64_t time) const {
    return static_cast<size_t>(std::ranges::upper_bound(borders_, time) - borders_.begin()) * 2 - 1;
  }
  size_t place_before(int64_t time) const { return place_of_border(time) - 1; }

  int32_t touched_point(int64_t start, int64_t end) const {
    if (start != end || borders_.empty() || start <= borders_.front() || start >= borders_.back()) return -1;
    const size_t at = place_of_border(start);
    return long_[borders_[at / 2] == start ? at : at - 1];  // no empty range holds an instant
  }

  void paint(const std::vector<Interval>& ranges, bool empty_too, std::vector<int32_t>& colour) const {
    auto next = indexes<uint32_t>(places_ + 1);  // the first unpainted place from each place on
    const auto find = [&](size_t at) {
      while (next[at] != at) {
        next[at] = next[next[at]];
        at = next[at];
      }
      return at;
    };
    for (size_t k = ranges.size(); k-- > 0;) {
      const bool empty = ranges[k].start == ranges[k].end;
      if (empty && !empty_too) continue;
      const size_t from = place_of_border(ranges[k].start) + (empty ? 0 : 1);
      const size_t to = empty ? from + 1 : place_of_border(ranges[k].end);
      for (size_t at = find(from); at < to; at = find(at)) {
        colour[at] = static_cast<int32_t>(k);
        next[at] = static_cast<uint32_t>(at + 1);
      }
    }
  }

  std::vector<int64_t> borders_;
  size_t places_ = 0;
  std::vector<int32_t> long_;  // for each place, over ranges that are not empty
  std::vector<int32_t> tree_;  // maxima over places, over all ranges
};

}  // namespace stageline
