// The order numpy's argsort(kind="quicksort") gives (1.17 to 1.24, and later without AVX-512): equal keys come
// out in no stated order, and results that depend on it can only be met by the same algorithm.
//
// Introsort: median of three, the larger part waits on a stack, insertion below 17 elements, heapsort when the
// partitions go 2·log2(n) deep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace stageline {

template <class Key>
class NumpyArgsort {
 public:
  explicit NumpyArgsort(const std::vector<Key>& keys) : keys_(keys), order_(keys.size()) {
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<uint32_t>(i);
    if (order_.size() > 1) sort();
  }
  std::vector<uint32_t> take() { return std::move(order_); }

 private:
  static constexpr ptrdiff_t kSmall = 16;
  const Key& at(ptrdiff_t i) const { return keys_[order_[static_cast<size_t>(i)]]; }
  uint32_t& place(ptrdiff_t i) { return order_[static_cast<size_t>(i)]; }
  void swap(ptrdiff_t i, ptrdiff_t j) { std::swap(place(i), place(j)); }

  void sort() {
    struct Stretch {
      ptrdiff_t low, high;
      int depth;
    };
    std::vector<Stretch> waiting;
    int depth = -2;
    for (size_t n = order_.size(); n > 0; n >>= 1) depth += 2;
    Stretch part = {0, static_cast<ptrdiff_t>(order_.size()) - 1, depth};
    for (;;) {
      if (part.depth < 0) {
        heap_sort(part.low, part.high - part.low + 1);
      } else {
        while (part.high - part.low > kSmall) {
          const ptrdiff_t pivot = partition(part.low, part.high);
          --part.depth;
          if (pivot - part.low < part.high - pivot) {
            waiting.push_back({pivot + 1, part.high, part.depth});
            part.high = pivot - 1;
          } else {
            waiting.push_back({part.low, pivot - 1, part.depth});
            part.low = pivot + 1;
          }
        }
        insertion_sort(part.low, part.high);
      }
      if (waiting.empty()) return;
      part = waiting.back();
      waiting.pop_back();
    }
  }

  ptrdiff_t partition(ptrdiff_t low, ptrdiff_t high) {
    const ptrdiff_t middle = low + ((high - low) >> 1);
    if (at(middle) < at(low)) swap(middle, low);
    if (at(high) < at(middle)) swap(high, middle);
    if (at(middle) < at(low)) swap(middle, low);
    const Key pivot = at(middle);
    ptrdiff_t i = low, j = high - 1;
    swap(middle, j);
    for (;;) {
      do ++i;
      while (at(i) < pivot);
      do --j;
      while (pivot < at(j));
      if (i >= j) break;
      swap(i, j);
    }
    swap(i, high - 1);
    return i;
  }

  void insertion_sort(ptrdiff_t low, ptrdiff_t high) {
    for (ptrdiff_t i = low + 1; i <= high; ++i) {
      const uint32_t moving = place(i);
      ptrdiff_t j = i;
      for (; j > low && keys_[moving] < at(j - 1); --j) place(j) = place(j - 1);
      place(j) = moving;
    }
  }

  void heap_sort(ptrdiff_t low, ptrdiff_t n) {
    const auto heap = [&](ptrdiff_t i) -> uint32_t& { return place(low + i - 1); };  // from 1
    const auto sink = [&](uint32_t moving, ptrdiff_t i) {
      for (ptrdiff_t j = 2 * i; j <= n;) {
        if (j < n && keys_[heap(j)] < keys_[heap(j + 1)]) ++j;
        if (!(keys_[moving] < keys_[heap(j)])) break;
        heap(i) = heap(j);
        i = j;
        j *= 2;
      }
      heap(i) = moving;
    };
    for (ptrdiff_t l = n >> 1; l > 0; --l) sink(heap(l), l);
    while (n > 1) {
      const uint32_t moving = heap(n);
      heap(n) = heap(1);
      --n;
      sink(moving, 1);
    }
  }

  const std::vector<Key>& keys_;
  std::vector<uint32_t> order_;
};

// Positions of `keys` in ascending order, at most 2^32 of them.
template <class Key>
std::vector<uint32_t> numpy_argsort(const std::vector<Key>& keys) {
  return NumpyArgsort<Key>(keys).take();
}

}  // namespace stageline
