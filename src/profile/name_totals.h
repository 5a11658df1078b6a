// Durations summed by name, and the choice of the names worth a row of their own; the rest is "others".
// Both the kernel and the annotation breakdown stand on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_pool.h"

namespace stageline {

struct DurationStats {
  int64_t count = 0, sum_ns = 0, min_ns = INT64_MAX, max_ns = INT64_MIN;
  double mean_ns = 0, squares = 0;  // running mean and sum of squared deviations (Welford)

  void add(int64_t ns);
  void merge(const DurationStats& other);  // as if all values had been added here (Chan et al.)
  double std_ns() const;                   // sample (n−1); 0 for a single value
};

struct DurationTotal {
  StringId name = 0;
  int64_t folded = 0;  // of "others": how many names it holds; 0 for a name
  DurationStats stats;
};

// One of these per rank and question; `add` is an array access.
class NameTotals {
 public:
  explicit NameTotals(size_t name_count) : place_(name_count, -1) {}
  void add(StringId name, int64_t ns) {
    if (place_[name] < 0) {
      place_[name] = static_cast<int32_t>(totals_.size());
      totals_.push_back({name, 0, {}});
    }
    totals_[static_cast<size_t>(place_[name])].stats.add(ns);
  }
  // By descending sum; equal sums by name.
  std::vector<DurationTotal> sorted(const StringPool& names) const;

 private:
  std::vector<int32_t> place_;  // by name id
  std::vector<DurationTotal> totals_;
};

struct FoldOptions {
  int64_t most_names = 10;
  double share = 0.8;
  std::vector<std::string> keep;  // names that contain one of these are never folded
};

// The largest names that make up `share` of the whole time, at most `most_names`, and all that match
// `keep`; the others merged into a last entry with `folded` set. `totals` as `sorted` gives them.
std::vector<DurationTotal> fold_by_share(std::vector<DurationTotal> totals, const StringPool& names,
                                         const FoldOptions& options);

struct HtaTotal {  // microseconds
  std::string_view name;
  double sum = 0, max = 0, min = 0, std = 0, mean = 0;
};
// HTA's rule: only with more than `most_names` names, the cut is the `share` quantile of the list of
// cumulative sums, and from there on the statistics describe sums of names, not calls (faults F3, F4).
std::vector<HtaTotal> hta_fold(const std::vector<DurationTotal>& totals, const StringPool& names,
                               const FoldOptions& options);

}  // namespace stageline
