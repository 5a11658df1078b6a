// Unions of time intervals, as every breakdown needs them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stageline {

struct Interval {
  int64_t start = 0, end = 0;
};

// Sorted by start, merged where they touch or overlap. A new interval starts only after the running
// maximum of ends, so members with negative length stay as they are (HTA's rounding makes them).
inline std::vector<Interval> union_of(std::vector<Interval> intervals) {
  const auto before = [](const Interval& a, const Interval& b) {
    return a.start != b.start ? a.start < b.start : a.end < b.end;
  };
  if (!std::is_sorted(intervals.begin(), intervals.end(), before))
    std::sort(intervals.begin(), intervals.end(), before);
  size_t kept = 0;
  for (const Interval& next : intervals) {
    if (kept > 0 && next.start <= intervals[kept - 1].end) {
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, next.end);
    } else {
      intervals[kept++] = next;
    }
  }
  intervals.resize(kept);
  return intervals;
}

// Sum of lengths of a union.
inline int64_t length_of(const std::vector<Interval>& merged) {
  int64_t sum = 0;
  for (const Interval& i : merged) sum += i.end - i.start;
  return sum;
}

// What two unions share.
inline int64_t shared_length(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  int64_t sum = 0;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    sum += std::max<int64_t>(0, std::min(a[i].end, b[k].end) - std::max(a[i].start, b[k].start));
    if (a[i].end < b[k].end) {
      ++i;
    } else {
      ++k;
    }
  }
  return sum;
}

}  // namespace stageline
