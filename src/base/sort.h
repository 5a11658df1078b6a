// Sorting by one compiled merge sort for all types.
#pragma once

#include "base/std.h"

namespace stageline {

// Returns the places 0 to count - 1 in a stable order by `before(rows, a, b)`, which says whether the row at a comes
// before the row at b; empty when they are in order already.
std::vector<size_t> stable_order(size_t count, bool (*before)(const void* rows, size_t a, size_t b), const void* rows);

// Does what std::ranges::stable_sort does. The library's sort is compiled anew for each comparison, 5 kB each; this one
// adds 0.4 kB, and takes up to twice the time when rows are many and unsorted. So calls that sort events or cells use
// std::ranges::sort.
template <std::ranges::random_access_range Rows, class Less = std::ranges::less, class Key = std::identity>
void sort_stably(Rows&& rows, Less less = {}, Key key = {}) {
  const auto first = std::ranges::begin(rows);
  const auto is_before = [&](size_t a, size_t b) -> bool {
    return std::invoke(less, std::invoke(key, first[a]), std::invoke(key, first[b]));
  };
  using Before = decltype(is_before);
  std::vector<size_t> from = stable_order(
      std::ranges::size(rows),
      [](const void* before, size_t a, size_t b) { return (*static_cast<const Before*>(before))(a, b); }, &is_before);
  // Moves each cycle of places, one row being held meanwhile. A place whose row has come is its own source.
  for (size_t start = 0; start < from.size(); ++start) {
    if (from[start] == start) continue;
    auto held = std::move(first[start]);
    size_t at = start;
    for (size_t next = from[at]; next != start; next = from[at]) {
      first[at] = std::move(first[next]);
      from[at] = at;
      at = next;
    }
    first[at] = std::move(held);
    from[at] = at;
  }
}

}  // namespace stageline
