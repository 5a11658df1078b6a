// The names of slices in lanes: the trace's names with their ids, and after them the few that the viewer adds, such as
// codes of cells that no slice names.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>

#include "base/string_pool.h"

namespace stageline {

class ViewNames {
 public:
  // `pool` must outlive it and not grow.
  explicit ViewNames(const StringPool& pool) : pool_(pool) {}
  // The id of a text; the text is added where the trace does not have it. O(added).
  StringId intern(std::string_view text) {
    if (const auto known = pool_.find(text)) return *known;
    const auto at = std::ranges::find(added_, text);
    const auto id = static_cast<StringId>(pool_.size() + (at - added_.begin()));
    if (at == added_.end()) added_.emplace_back(text);
    return id;
  }
  std::string_view text(StringId id) const {
    return id < pool_.size() ? pool_.text(id) : std::string_view(added_[id - pool_.size()]);
  }
  size_t size() const { return pool_.size() + added_.size(); }

 private:
  const StringPool& pool_;
  std::deque<std::string> added_;  // a deque, so that texts stay where they are
};

}  // namespace stageline
