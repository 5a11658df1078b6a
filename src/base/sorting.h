// Sorting that knows more of its rows than that they can be compared.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// Sorts what is nearly sorted: rows of several tables that were each written in order. The order must be total, because
// equal elements may change places.
template <class Iterator, class Before> void sort_runs(Iterator begin, Iterator end, Before before) {
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

// Sorts rows stably by numbers: key(row) is an array of int32_t, the first one counts most. It counts where the numbers
// lie close together, else it compares. O(rows), or O(rows log rows).
template <class Key> void sort_by_numbers(std::vector<uint32_t>& rows, const Key& key) {
  if (std::is_sorted(rows.begin(), rows.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); })) return;
  auto low = key(rows.front()), high = low;
  for (const uint32_t row : rows) {
    const auto own = key(row);
    for (size_t i = 0; i < own.size(); ++i) low[i] = std::min(low[i], own[i]), high[i] = std::max(high[i], own[i]);
  }
  const auto range = [&](size_t i) { return int64_t{high[i]} - low[i] + 1; };
  const auto max = std::ssize(rows) + 1024;
  int64_t places = 1;
  for (size_t i = 0; i < low.size() && places <= max; ++i)
    places = range(i) > max / places ? max + 1 : places * range(i);
  if (places > max) {
    std::stable_sort(rows.begin(), rows.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    return;
  }
  const auto place = [&](uint32_t row) {
    const auto own = key(row);
    int64_t at = 0;
    for (size_t i = 0; i < own.size(); ++i) at = at * range(i) + (int64_t{own[i]} - low[i]);
    return static_cast<size_t>(at);
  };
  std::vector<uint32_t> next(static_cast<size_t>(places) + 1, 0), sorted(rows.size());
  for (const uint32_t row : rows) ++next[place(row) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (const uint32_t row : rows) sorted[next[place(row)]++] = row;
  rows = std::move(sorted);
}

}  // namespace stageline
