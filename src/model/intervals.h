// Spans of time intervals, and unions, intersections and differences of sets of them, for all that breaks time down.
#pragma once

#include "model/cells.h"

namespace stageline {

struct Interval {
  int64_t start = 0, end = 0;
};

// The span of what is added: from the first start to the last end.
struct Span {
  int64_t start_ns = INT64_MAX, end_ns = INT64_MIN;
  bool any() const { return start_ns <= end_ns; }
  int64_t length_ns() const { return any() ? between_ns(start_ns, end_ns) : 0; }
  void add(int64_t start, int64_t end) {
    start_ns = std::min(start_ns, start);
    end_ns = std::max(end_ns, end);
  }
};

// The union of intervals that come in order of their starts.
class RunningUnion {
 public:
  // Returns the time of an interval that no earlier one covers.
  int64_t add(int64_t start, int64_t end) {
    const int64_t fresh = std::max<int64_t>(0, between_ns(std::max(start, end_ns_), end));
    end_ns_ = std::max(end_ns_, end);
    return fresh;
  }
  int64_t end_ns() const { return end_ns_; }

 private:
  int64_t end_ns_ = INT64_MIN;
};

// Sorts intervals by start and merges those that touch or overlap. A new interval begins only after the running maximum
// of the ends, so an interval of negative length (HTA's rounding makes some) stays as it is where nothing covers it.
inline std::vector<Interval> union_of(std::vector<Interval> intervals) {
  const auto before = [](const Interval& a, const Interval& b) {
    return a.start != b.start ? a.start < b.start : a.end < b.end;
  };
  if (!std::is_sorted(intervals.begin(), intervals.end(), before))
    std::sort(intervals.begin(), intervals.end(), before);
  size_t kept = 0;
  for (const Interval& next : intervals)
    if (kept > 0 && next.start <= intervals[kept - 1].end)
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, next.end);
    else intervals[kept++] = next;
  intervals.resize(kept);
  return intervals;
}

// Returns the total length of a union, or INT64_MAX where it does not fit.
inline int64_t length_of(const std::vector<Interval>& merged) {
  int64_t sum = 0;
  for (const Interval& i : merged) sum = sum_or_limit(sum, between_ns(i.start, i.end));
  return sum;
}

// Returns how much time two unions share.
inline int64_t shared_length(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  int64_t sum = 0;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    sum += std::max<int64_t>(0, std::min(a[i].end, b[k].end) - std::max(a[i].start, b[k].start));
    if (a[i].end < b[k].end) ++i;
    else ++k;
  }
  return sum;
}

// Returns the intersection of two unions, as a union.
inline std::vector<Interval> shared_of(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::vector<Interval> out;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const int64_t start = std::max(a[i].start, b[k].start), end = std::min(a[i].end, b[k].end);
    if (start < end) out.push_back({start, end});
    if (a[i].end < b[k].end) ++i;
    else ++k;
  }
  return out;
}

// Returns the part of the union `a` that is not in the union `b`.
inline std::vector<Interval> without(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::vector<Interval> out;
  size_t k = 0;
  for (const Interval& whole : a) {
    int64_t start = whole.start;
    while (k < b.size() && b[k].end <= start) ++k;
    for (size_t j = k; j < b.size() && b[j].start < whole.end; ++j) {
      if (b[j].start > start) out.push_back({start, b[j].start});
      start = std::max(start, b[j].end);
      k = j;  // this interval of `b` may reach into the next interval of `a`
    }
    if (start < whole.end) out.push_back({start, whole.end});
  }
  return out;
}

// A union prepared to answer in O(log n) how much of any window it covers.
class CoveredTime {
 public:
  explicit CoveredTime(std::vector<Interval> merged) : merged_(std::move(merged)), before_(merged_.size() + 1, 0) {
    for (size_t i = 0; i < merged_.size(); ++i) before_[i + 1] = before_[i] + merged_[i].end - merged_[i].start;
  }
  int64_t within(int64_t start, int64_t end) const { return end > start ? until(end) - until(start) : 0; }
  int64_t total() const { return before_.back(); }

 private:
  int64_t until(int64_t time) const {
    const auto after = std::ranges::upper_bound(merged_, time, {}, &Interval::start);
    const size_t i = after - merged_.begin();
    return i == 0 ? 0 : before_[i - 1] + std::min(time, merged_[i - 1].end) - merged_[i - 1].start;
  }
  std::vector<Interval> merged_;
  std::vector<int64_t> before_;  // before_[i]: time covered by the intervals before interval i
};

// Returns for each cell the other half of its overlapped forward and backward, kNoPair for a cell without one. Two
// halves are an F and a B or I of one rank and step with the same start and end and a length above zero. Expects sorted
// cells. O(cells).
inline constexpr uint32_t kNoPair = UINT32_MAX;
std::vector<uint32_t> overlapped_pairs(const Cells& cells);

// Some sources mark the backward of the loss apart from the backward of the layers (MindSpeed's DualPipeV does).
// Returns for each such cell the backward that it belongs to, kNoPair for all other cells; nothing where no cell is
// such. The backward is the B or I of the same step, rank, micro-batch and chunk that begins after it, with at most one
// other piece of work between. The time of both together is that of one backward. Expects sorted cells. O(cells).
std::vector<uint32_t> loss_backwards(const Cells& cells);

}  // namespace stageline
