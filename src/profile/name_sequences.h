// Counts equal sequences of names, such as the kernels of each call of an operator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/string_pool.h"

namespace stageline {

// Sequences are stored one after another in one arena, so none allocates memory of its own; each has a number of the
// caller's.
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
    std::ranges::stable_sort(spans_, [&](const Span& a, const Span& b) { return compare(a, b) < 0; });
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
