// Sorts what is nearly sorted: rows of several tables that were each written in order. The order must be total, because
// equal elements may change places.
#pragma once

#include <algorithm>
#include <vector>

namespace stageline {

template <class Iterator, class Before>
void sort_runs(Iterator begin, Iterator end, Before before) {
  constexpr size_t kMaxRuns = 16;           // merging them two by two still costs less than sorting
  constexpr std::ptrdiff_t kFarthest = 16;  // so far back an element is put into its run, rather than beginning another
  std::vector<Iterator> ends;
  for (Iterator at = begin; at != end && ends.size() <= kMaxRuns; ends.push_back(at)) {
    const Iterator run = at;
    for (++at; at != end; ++at) {
      if (!before(*at, *(at - 1))) continue;
      Iterator place = at;
      while (place != run && at - place <= kFarthest && before(*at, *(place - 1))) --place;
      if (at - place > kFarthest) break;
      std::rotate(place, at, at + 1);
    }
  }
  if (ends.size() > kMaxRuns) return std::sort(begin, end, before);
  while (ends.size() > 1) {
    std::vector<Iterator> merged;
    Iterator from = begin;
    for (size_t i = 0; i + 1 < ends.size(); i += 2) {
      std::inplace_merge(from, ends[i], ends[i + 1], before);
      merged.push_back(from = ends[i + 1]);
    }
    if (ends.size() % 2 == 1) merged.push_back(ends.back());
    ends.swap(merged);
  }
}

}  // namespace stageline
