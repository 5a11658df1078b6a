// Which lane of a part holds a slice, and which slices are open at a time.
#pragma once

#include "model/trace.h"

namespace stageline {

// Returns the lane's index; SIZE_MAX when none holds the slice. O(log lanes).
inline size_t lane_of(const Part& part, size_t slice) {
  const auto at = std::ranges::upper_bound(part.lanes, slice, {}, &Lane::end);
  return at == part.lanes.end() || slice < at->begin ? SIZE_MAX : static_cast<size_t>(at - part.lanes.begin());
}

// Finds which slice of a thread is open at given times.
struct SliceQuestion {
  size_t lane = 0;  // lane of the part; it must be a host thread's
  int64_t time_ns = 0;
  size_t asker = 0;  // any number of the caller's, handed back with the answer
};

enum class SliceEnd : uint8_t { kExcluded, kIncluded };  // whether a slice holds the time at which it ends

// Calls answer(asker, slice) for every question, in the order of lanes and times. `slice` is the innermost slice that
// holds the time, start ≤ time < end (≤ end with kIncluded), or kNoSliceIndex. Slices nest as the readers nest them:
// one that ends later than the slice around it closes that slice. O(n log n) in the questions, plus one pass over the
// lanes asked for. (Climbing from the last slice that started would be quadratic where calls nest by the thousand.)
template <class Answer>
void find_open_slices(const Part& part, std::vector<SliceQuestion> questions, Answer answer,
                      SliceEnd end = SliceEnd::kExcluded) {
  const Slices& s = part.slices;
  sort_stably(questions, {}, [](const SliceQuestion& one) { return std::pair(one.lane, one.time_ns); });
  std::vector<uint32_t> open;
  size_t next = 0, lane = SIZE_MAX;
  for (const SliceQuestion& q : questions) {
    if (q.lane >= part.lanes.size()) continue;
    if (q.lane != lane) {
      lane = q.lane;
      next = part.lanes[lane].begin;
      open.clear();
    }
    for (; next < part.lanes[lane].end && s.start_ns[next] <= q.time_ns; ++next) {
      // Compares times and does not follow Slices::parent: for device work on a host thread's row the parent is the
      // owning operator, which may run on any thread.
      const auto left = [&](uint32_t top) {
        return s.start_ns[next] >= s.end_ns(top) || s.end_ns(next) > s.end_ns(top);
      };
      while (!open.empty() && left(open.back())) open.pop_back();
      open.push_back(static_cast<uint32_t>(next));
    }
    const int64_t latest = q.time_ns - (end == SliceEnd::kIncluded ? 1 : 0);
    while (!open.empty() && s.end_ns(open.back()) <= latest) open.pop_back();
    answer(q.asker, open.empty() ? kNoSliceIndex : open.back());
  }
}

}  // namespace stageline
