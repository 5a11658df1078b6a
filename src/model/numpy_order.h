// Computes the order in which numpy.argsort leaves keys by default, including how it places equal ones. The sort_values
// of pandas passes this order to everything that HTA accumulates over time, so HTA's numbers depend on how its
// quicksort places ties.
//
// numpy's sort for machine numbers is introsort (numpy/core/src/npysort/quicksort.cpp, up to 1.24; later versions use
// vector instructions if the processor supports them). It takes the median of three, and the larger half waits on a
// stack. Up to 16 keys are sorted by insertion, and heap sort takes over where halving went wrong 2·log2(n) times.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

namespace detail {

template <class Key> void numpy_heap_sort(const std::vector<Key>& keys, uint32_t* order, size_t count) {
  // Places `item` into the heap's hole at `hole` (1-based), the heap being `size` long.
  const auto sift = [&](size_t hole, size_t size, uint32_t item) {
    for (size_t child = hole * 2; child <= size; child *= 2) {
      if (child < size && keys[order[child - 1]] < keys[order[child]]) ++child;
      if (!(keys[item] < keys[order[child - 1]])) break;
      order[hole - 1] = order[child - 1];
      hole = child;
    }
    order[hole - 1] = item;
  };
  for (size_t root = count / 2; root > 0; --root) sift(root, count, order[root - 1]);
  for (size_t size = count; size > 1; --size) {
    const uint32_t item = order[size - 1];
    order[size - 1] = order[0];
    sift(1, size - 1, item);
  }
}

template <class Key>
void numpy_insertion_sort(const std::vector<Key>& keys, uint32_t* order, ptrdiff_t first, ptrdiff_t last) {
  for (ptrdiff_t i = first + 1; i <= last; ++i) {
    const uint32_t item = order[i];
    ptrdiff_t at = i;
    for (; at > first && keys[item] < keys[order[at - 1]]; --at) order[at] = order[at - 1];
    order[at] = item;
  }
}

// Splits [first, last] around the median of its first, middle and last key; returns where that median came to lie.
template <class Key>
ptrdiff_t numpy_partition(const std::vector<Key>& keys, uint32_t* order, ptrdiff_t first, ptrdiff_t last) {
  const auto less = [&](ptrdiff_t a, ptrdiff_t b) { return keys[order[a]] < keys[order[b]]; };
  const ptrdiff_t middle = first + ((last - first) >> 1);
  if (less(middle, first)) std::swap(order[middle], order[first]);
  if (less(last, middle)) std::swap(order[last], order[middle]);
  if (less(middle, first)) std::swap(order[middle], order[first]);
  const Key pivot = keys[order[middle]];
  ptrdiff_t i = first, k = last - 1;
  std::swap(order[middle], order[k]);
  for (;;) {
    do ++i;
    while (keys[order[i]] < pivot);
    do --k;
    while (pivot < keys[order[k]]);
    if (i >= k) break;
    std::swap(order[i], order[k]);
  }
  std::swap(order[i], order[last - 1]);
  return i;
}

}  // namespace detail

// Returns the positions of the keys in ascending order of the keys, which must not be NaN.
template <class Key> std::vector<uint32_t> numpy_order(const std::vector<Key>& keys) {
  constexpr ptrdiff_t kInsertionLength = 15;
  auto order = indexes<uint32_t>(keys.size());
  if (keys.size() < 2) return order;
  struct Range {
    ptrdiff_t first, last;
    int depth;
  };
  std::vector<Range> waiting = {
      {0, static_cast<ptrdiff_t>(keys.size()) - 1, 2 * (static_cast<int>(std::bit_width(keys.size())) - 1)}};
  while (!waiting.empty()) {
    auto [first, last, depth] = waiting.back();
    waiting.pop_back();
    if (depth < 0) {
      detail::numpy_heap_sort(keys, order.data() + first, static_cast<size_t>(last - first + 1));
      continue;
    }
    while (last - first > kInsertionLength) {
      const ptrdiff_t middle = detail::numpy_partition(keys, order.data(), first, last);
      --depth;
      if (middle - first < last - middle) {
        waiting.push_back({middle + 1, last, depth});
        last = middle - 1;
      } else {
        waiting.push_back({first, middle - 1, depth});
        first = middle + 1;
      }
    }
    detail::numpy_insertion_sort(keys, order.data(), first, last);
  }
  return order;
}

// Sorts rows by a key in that order.
template <class Row, class KeyOf> void sort_as_numpy(std::vector<Row>& rows, KeyOf key_of) {
  std::vector<int64_t> keys(rows.size());
  std::ranges::transform(rows, keys.begin(), key_of);
  auto sorted = mapped<Row>(numpy_order(keys), [&](const uint32_t at) { return rows[at]; });
  rows = std::move(sorted);
}

}  // namespace stageline
