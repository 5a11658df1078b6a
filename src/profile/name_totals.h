// Sums durations by name, and chooses the names that get a row of their own; the rest becomes "others". The kernel and
// the annotation breakdown are both built on this.
#pragma once

#include "base/string_pool.h"

namespace stageline {

struct DurationStats {
  int64_t count = 0, sum_ns = 0, min_ns = INT64_MAX, max_ns = INT64_MIN;
  double mean_ns = 0, squares = 0;  // running mean, and sum of squared deviations (Welford)

  void add(int64_t ns);
  void merge(const DurationStats& other);  // as if all its values had been added here (Chan et al.)
  double std_ns() const;                   // sample standard deviation (n−1); 0 for a single value
};

struct DurationTotal {
  StringId name = 0;
  int64_t folded = 0;  // for "others", how many names it stands for; 0 for a name
  DurationStats stats;
};

// One object per rank and question; add() is an array access.
class NameTotals {
 public:
  explicit NameTotals(size_t name_count) : place_(name_count, -1) {}
  void add(StringId name, int64_t ns) {
    if (place_[name] < 0) {
      place_[name] = static_cast<int32_t>(totals_.size());
      totals_.push_back({name, 0, {}});
    }
    totals_[place_[name]].stats.add(ns);
  }
  // Ordered by descending sum; equal sums by name.
  std::vector<DurationTotal> sorted(const StringPool& names) const;

 private:
  std::vector<int32_t> place_;  // for each name id
  std::vector<DurationTotal> totals_;
};

struct FoldOptions {
  int64_t max_names = 10;
  double share = 0.8;
  std::vector<std::string> keep;  // names that contain one of these always get a row
};

// Keeps the largest names that together make up `share` of the whole time, at most `max_names`, and all names that
// match `keep`. The others are merged into a last entry, whose `folded` is set. `totals` must come from sorted().
std::vector<DurationTotal> fold_by_share(std::vector<DurationTotal> totals, const StringPool& names,
                                         const FoldOptions& options);

struct HtaTotal {  // in microseconds
  std::string_view name;
  double sum = 0, max = 0, min = 0, std = 0, mean = 0;
};
// Folds by HTA's rule: only when there are more than `max_names` names. The cut is the `share` quantile of the list of
// cumulative sums. The statistics of folded names describe sums of names instead of calls (bugs F3, F4).
std::vector<HtaTotal> hta_fold(const std::vector<DurationTotal>& totals, const StringPool& names,
                               const FoldOptions& options);

// Counts equal sequences of names, such as the kernels of each call of an operator. Sequences are stored one after
// another in one arena, so none allocates memory of its own; each has a number of the caller's.
class NameSequences {
 public:
  struct Group {                        // sequences with equal heads and names
    const StringId *first, *last;       // the names, beginning with the head
    const uint32_t *items, *items_end;  // the numbers of its sequences, in the order in which they were added
    size_t count() const { return items_end - items; }
  };

  void begin(StringId head, uint32_t item) {
    spans_.push_back({names_.size(), names_.size() + 1, item});
    names_.push_back(head);
  }
  void add(StringId name) {
    names_.push_back(name);
    spans_.back().end = names_.size();
  }
  bool empty() const { return spans_.empty(); }

  // O(total length · log). Groups are ordered by ids, which differ from input to input, so sort them by text for
  // output.
  std::vector<Group> groups() {
    const auto compare = [&](const Span& a, const Span& b) {
      return std::lexicographical_compare_three_way(names_.begin() + a.begin, names_.begin() + a.end,
                                                    names_.begin() + b.begin, names_.begin() + b.end);
    };
    sort_stably(spans_, [&](const Span& a, const Span& b) { return compare(a, b) < 0; });
    items_.clear();
    for (const Span& span : spans_) items_.push_back(span.item);
    std::vector<Group> out;
    for (size_t i = 0; i < spans_.size();) {
      size_t end = i + 1;
      while (end < spans_.size() && compare(spans_[i], spans_[end]) == 0) ++end;
      out.push_back(
          {names_.data() + spans_[i].begin, names_.data() + spans_[i].end, items_.data() + i, items_.data() + end});
      i = end;
    }
    return out;
  }

 private:
  struct Span {
    size_t begin, end;
    uint32_t item;
  };
  std::vector<StringId> names_;
  std::vector<Span> spans_;
  std::vector<uint32_t> items_;
};

}  // namespace stageline
