// Sorting in little code: the library's sorts are compiled anew for each comparison, 4 to 7 kB each.
#pragma once

#include "base/std.h"

namespace stageline {

// Returns the places 0 to count - 1 in a stable order by `before(rows, a, b)`, which says whether the row at a comes
// before the row at b; empty when they are in order already.
std::vector<size_t> stable_order(size_t count, bool (*before)(const void* rows, size_t a, size_t b), const void* rows);

// Sorts in runs of so many rows first, by inserting.
inline constexpr size_t kSortedRun = 8;

// Merges two stretches of `from`, [begin, middle) and [middle, end), into the same places of `to`.
template <class Row, class Before>
void merge_stretches(const Row* from, Row* to, size_t begin, size_t middle, size_t end, const Before& before) {
  size_t left = begin, right = middle;
  for (size_t at = begin; at < end; ++at) {
    const bool takes_right = left == middle || (right < end && before(from[right], from[left]));
    to[at] = from[takes_right ? right++ : left++];
  }
}

// Sorts rows that are copied byte by byte: runs, then merges of twice the length.
template <class Row, class Before> void merge_sort(Row* rows, size_t count, const Before& before) {
  for (size_t begin = 0; begin < count; begin += kSortedRun)
    for (size_t end = begin + 1; end < std::min(begin + kSortedRun, count); ++end) {
      const Row row = rows[end];
      size_t at = end;
      for (; at > begin && before(row, rows[at - 1]); --at) rows[at] = rows[at - 1];
      rows[at] = row;
    }
  if (count <= kSortedRun) return;
  std::vector<Row> room(rows, rows + count);
  Row *from = rows, *to = room.data();
  for (size_t run = kSortedRun; run < count; run *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * run)
      merge_stretches(from, to, begin, std::min(begin + run, count), std::min(begin + 2 * run, count), before);
    std::swap(from, to);
  }
  if (from != rows) std::copy(from, from + count, rows);
}

// Does what std::ranges::stable_sort does, in 0.6 kB a call. Rows that own memory are sorted by one compiled sort of
// their places, which takes up to twice the time of the library's. For numbers alone, and for millions of rows in no
// order, std::ranges::sort is a third faster.
template <std::ranges::random_access_range Rows, class Less = std::ranges::less, class Key = std::identity>
void sort_stably(Rows&& rows, Less less = {}, Key key = {}) {
  using Row = std::ranges::range_value_t<Rows>;
  const auto first = std::ranges::begin(rows);
  const size_t count = std::ranges::size(rows);
  const auto before = [&](const Row& a, const Row& b) -> bool {
    return std::invoke(less, std::invoke(key, a), std::invoke(key, b));
  };
  if constexpr (std::ranges::contiguous_range<Rows> && std::is_trivially_copyable_v<Row>) {
    size_t ordered = 1;
    while (ordered < count && !before(first[ordered], first[ordered - 1])) ++ordered;
    if (ordered < count) merge_sort(std::to_address(first), count, before);
  } else {
    const auto comes_before = [&](size_t a, size_t b) { return before(first[a], first[b]); };
    using Before = decltype(comes_before);
    std::vector<size_t> from = stable_order(
        count, [](const void* test, size_t a, size_t b) { return (*static_cast<const Before*>(test))(a, b); },
        &comes_before);
    if (from.empty()) return;
    std::vector<Row> ordered;
    ordered.reserve(count);
    for (const size_t at : from) ordered.push_back(std::move(first[at]));
    std::ranges::move(ordered, first);
  }
}

}  // namespace stageline
