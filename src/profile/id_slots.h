// Maps numbers of a trace (correlations) to dense places of an array without a hash table: by the numbers themselves
// where they are close together, otherwise by their order.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

class IdSlots {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  // Negative numbers get no place. O(n); O(n log n) when they are far apart.
  explicit IdSlots(std::vector<int64_t> ids) {
    int64_t max = max_over<int64_t>(ids, {}, -1);
    dense_ = max < std::ssize(ids) * 8 + 65536;
    if (dense_) {
      size_ = max + 1;
      return;
    }
    sort_unique(ids);
    ids.erase(ids.begin(), std::ranges::lower_bound(ids, 0));
    sorted_ = std::move(ids);
    size_ = sorted_.size();
  }

  size_t size() const { return size_; }
  size_t slot(int64_t id) const {
    if (id < 0) return kNone;
    if (dense_) return id < static_cast<int64_t>(size_) ? static_cast<size_t>(id) : kNone;
    const auto it = std::ranges::lower_bound(sorted_, id);
    return it != sorted_.end() && *it == id ? static_cast<size_t>(it - sorted_.begin()) : kNone;
  }

 private:
  bool dense_ = true;
  size_t size_ = 0;
  std::vector<int64_t> sorted_;
};

}  // namespace stageline
