// A stable merge sort that makes exactly the same comparisons as Python's list.sort (3.11 and later).
//
// For a total order, any stable sort gives the same answer. Some orders by which other tools sort traces are not total.
// Then the answer depends on which elements are compared, and only the same algorithm compares the same ones. Tim
// Peters' description is in CPython, Objects/listsort.txt. The parts:
//
//   runs      natural ascending runs (strictly descending ones reversed), short ones extended by binary
//             insertion to a length between 32 and 64
//   merging   which neighbours merge is decided by Munro and Wild's powersort
//   galloping after one side wins seven times in a row, exponential search
#pragma once

#include "base/vocabulary.h"

namespace stageline {

template <class T, class Less> class TimSort {
 public:
  // `less(a, b)` need not be transitive. O(n log n) comparisons and up to n/2 elements of scratch.
  TimSort(std::vector<T>& items, Less less) : a_(items.data()), count_(items.size()), less_(less) {}

  void run() {
    if (count_ < 2) return;
    const size_t min = min_run(count_);
    for (size_t at = 0; at < count_;) {
      size_t length = natural_run(at);
      if (length < min) {
        const size_t forced = std::min(count_ - at, min);
        insert_from(at, at + forced, at + length);
        length = forced;
      }
      place_run(at, length);
      at += length;
    }
    while (runs_.size() > 1) {
      size_t k = runs_.size() - 2;
      if (k > 0 && runs_[k - 1].length < runs_[k + 1].length) --k;
      merge_at(k);
    }
  }

 private:
  static constexpr ptrdiff_t kGallop = 7;
  struct Run {
    size_t begin, length;
    int power;
  };

  static size_t min_run(size_t n) {
    size_t odd = 0;
    while (n >= 64) {
      odd |= n & 1;
      n >>= 1;
    }
    return n + odd;
  }

  // Returns the length of the run at `lo`. A strictly descending run is reversed.
  size_t natural_run(size_t lo) {
    if (lo + 1 == count_) return 1;
    size_t at = lo + 2;
    if (less_(a_[lo + 1], a_[lo])) {
      while (at < count_ && less_(a_[at], a_[at - 1])) ++at;
      std::reverse(a_ + lo, a_ + at);
    } else {
      while (at < count_ && !less_(a_[at], a_[at - 1])) ++at;
    }
    return at - lo;
  }

  // Inserts [from, hi) into the ordered [lo, from) by binary search.
  void insert_from(size_t lo, size_t hi, size_t from) {
    for (; from < hi; ++from) {
      const T pivot = a_[from];
      size_t left = lo, right = from;
      while (left < right) {
        const size_t middle = left + (right - left) / 2;
        if (less_(pivot, a_[middle])) right = middle;
        else left = middle + 1;
      }
      std::move_backward(a_ + left, a_ + from, a_ + from + 1);
      a_[left] = pivot;
    }
  }

  // Returns the first level of the binary tree over [0, 2n) that separates the middles of two neighbouring runs.
  int power_of(const Run& left, size_t right_length) const {
    size_t a = 2 * left.begin + left.length, b = a + left.length + right_length;
    for (int power = 1;; ++power) {
      if (a >= count_) {
        a -= count_;
        b -= count_;
      } else if (b >= count_) {
        return power;
      }
      a <<= 1;
      b <<= 1;
    }
  }

  void place_run(size_t begin, size_t length) {
    if (!runs_.empty()) {
      const int power = power_of(runs_.back(), length);
      while (runs_.size() > 1 && runs_[runs_.size() - 2].power > power) merge_at(runs_.size() - 2);
      runs_.back().power = power;
    }
    runs_.push_back({begin, length, 0});
  }

  void merge_at(size_t k) {
    size_t a = runs_[k].begin, na = runs_[k].length;
    const size_t b = runs_[k + 1].begin;
    size_t nb = runs_[k + 1].length;
    runs_[k].length += nb;
    runs_.erase(runs_.begin() + static_cast<ptrdiff_t>(k) + 1);
    const size_t skip = static_cast<size_t>(gallop_right(a_[b], a_ + a, na, 0));
    a += skip;
    na -= skip;
    if (na == 0) return;
    const ptrdiff_t n = nb;
    nb = static_cast<size_t>(gallop_left(a_[a + na - 1], a_ + b, n, n - 1));
    if (nb == 0) return;
    if (na <= nb) merge_low(a, na, b, nb);
    else merge_high(a, na, b, nb);
  }

  // Returns where `key` goes in a[0, n) before its equals. The search starts at `hint`.
  ptrdiff_t gallop_left(const T& key, const T* a, ptrdiff_t n, ptrdiff_t hint) {
    return gallop(n, hint, [&](ptrdiff_t i) { return less_(a[i], key); });
  }

  // Returns where `key` goes in a[0, n) after its equals. The search starts at `hint`.
  ptrdiff_t gallop_right(const T& key, const T* a, ptrdiff_t n, ptrdiff_t hint) {
    return gallop(n, hint, [&](ptrdiff_t i) { return !less_(key, a[i]); });
  }

  // Returns the number of elements that stand before a key, of n. It doubles its steps away from `hint`, then searches
  // between the last two.
  template <class StandsBefore> static ptrdiff_t gallop(ptrdiff_t n, ptrdiff_t hint, StandsBefore stands_before) {
    ptrdiff_t last = 0, at = 1;
    if (stands_before(hint)) {
      const ptrdiff_t max = n - hint;
      while (at < max && stands_before(hint + at)) {
        last = at;
        at = 2 * at + 1;
      }
      last += hint;
      at = std::min(at, max) + hint;
    } else {
      const ptrdiff_t max = hint + 1;
      while (at < max && !stands_before(hint - at)) {
        last = at;
        at = 2 * at + 1;
      }
      const ptrdiff_t near = last;
      last = hint - std::min(at, max);
      at = hint - near;
    }
    for (++last; last < at;) {
      const ptrdiff_t middle = last + (at - last) / 2;
      if (stands_before(middle)) last = middle + 1;
      else at = middle;
    }
    return at;
  }

  // Merges a_[a, +na) and the neighbouring a_[b, +nb), na ≤ nb, forwards; the left side waits in scratch. The callers
  // made sure that the first element of b goes before the first of a, and the last of a goes after the last of b.
  void merge_low(size_t a, ptrdiff_t na, size_t b, ptrdiff_t nb) {
    scratch_.assign(a_ + a, a_ + a + na);
    const T* left = scratch_.data();
    T *out = a_ + a, *right = a_ + b;
    const bool left_ends_last = merge_forward(left, na, right, nb, out);
    if (left_ends_last) {
      out = std::move(right, right + nb, out);
      *out = *left;
    } else {
      std::copy(left, left + na, out);
    }
  }

  // Returns true when one element of the left side remains, which goes behind all of the right side; false when the
  // right side is used up.
  bool merge_forward(const T*& left, ptrdiff_t& na, T*& right, ptrdiff_t& nb, T*& out) {
    *out++ = *right++;
    if (--nb == 0) return false;
    if (na == 1) return true;
    ptrdiff_t gallop = gallop_;
    for (;;) {
      for (ptrdiff_t lefts = 0, rights = 0;;) {
        if (less_(*right, *left)) {
          *out++ = *right++;
          ++rights;
          lefts = 0;
          if (--nb == 0) return false;
          if (rights >= gallop) break;
        } else {
          *out++ = *left++;
          ++lefts;
          rights = 0;
          if (--na == 1) return true;
          if (lefts >= gallop) break;
        }
      }
      ++gallop;
      ptrdiff_t lefts = 0, rights = 0;
      do {
        gallop -= gallop > 1;
        gallop_ = gallop;
        lefts = gallop_right(*right, left, na, 0);
        out = std::copy(left, left + lefts, out);
        left += lefts;
        na -= lefts;
        if (lefts > 0 && na == 1) return true;
        if (lefts > 0 && na == 0) return false;  // happens only when the order contradicts itself
        *out++ = *right++;
        if (--nb == 0) return false;
        rights = gallop_left(*left, right, nb, 0);
        out = std::move(right, right + rights, out);
        right += rights;
        nb -= rights;
        if (rights > 0 && nb == 0) return false;
        *out++ = *left++;
        if (--na == 1) return true;
      } while (lefts >= kGallop || rights >= kGallop);
      gallop_ = ++gallop;
    }
  }

  // Merges backwards in the same way, with the right side in scratch.
  void merge_high(size_t a, ptrdiff_t na, size_t b, ptrdiff_t nb) {
    scratch_.assign(a_ + b, a_ + b + nb);
    // Offsets: the last elements not yet merged are left[na − 1] and right[nb − 1], the next goes to out[na + nb − 1].
    T* const left = a_ + a;
    T* const right = scratch_.data();
    const bool right_ends_first = merge_backward(left, na, right, nb);
    T* const out = left;
    if (right_ends_first) {
      std::move_backward(left, left + na, out + na + 1);
      *out = right[0];
    } else {
      std::copy(right, right + nb, out + na);
    }
  }

  // Returns true when one element of the right side remains, which goes before all of the left side; false when the
  // left side is used up.
  bool merge_backward(T* left, ptrdiff_t& na, T* right, ptrdiff_t& nb) {
    T* const out = left;
    const auto take_left = [&] {
      out[na + nb - 1] = left[na - 1];
      --na;
    };
    const auto take_right = [&] {
      out[na + nb - 1] = right[nb - 1];
      --nb;
    };
    take_left();
    if (na == 0) return false;
    if (nb == 1) return true;
    ptrdiff_t gallop = gallop_;
    for (;;) {
      for (ptrdiff_t lefts = 0, rights = 0;;) {
        if (less_(right[nb - 1], left[na - 1])) {
          take_left();
          ++lefts;
          rights = 0;
          if (na == 0) return false;
          if (lefts >= gallop) break;
        } else {
          take_right();
          ++rights;
          lefts = 0;
          if (nb == 1) return true;
          if (rights >= gallop) break;
        }
      }
      ++gallop;
      ptrdiff_t lefts = 0, rights = 0;
      do {
        gallop -= gallop > 1;
        gallop_ = gallop;
        lefts = na - gallop_right(right[nb - 1], left, na, na - 1);
        std::move_backward(left + na - lefts, left + na, out + na + nb);
        na -= lefts;
        if (lefts > 0 && na == 0) return false;
        take_right();
        if (nb == 1) return true;
        rights = nb - gallop_left(left[na - 1], right, nb, nb - 1);
        std::copy(right + nb - rights, right + nb, out + na + nb - rights);
        nb -= rights;
        if (rights > 0 && nb == 1) return true;
        if (rights > 0 && nb == 0) return false;
        take_left();
        if (na == 0) return false;
      } while (lefts >= kGallop || rights >= kGallop);
      gallop_ = ++gallop;
    }
  }

  T* a_;
  size_t count_;
  Less less_;
  ptrdiff_t gallop_ = kGallop;
  std::vector<Run> runs_;
  std::vector<T> scratch_;
};

template <class T, class Less> void tim_sort(std::vector<T>& items, Less less) { TimSort<T, Less>(items, less).run(); }

}  // namespace stageline
