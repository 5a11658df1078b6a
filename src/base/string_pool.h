// StringPool: holds each distinct text once and gives it a dense 32-bit id. Id 0 is the empty string. Ids are private
// to one process; files and partial results carry text.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

using StringId = uint32_t;

class StringPool {
 public:
  StringPool() { intern({}); }
  // libstdc++'s deque allocates when moved from, so these may throw.
  StringPool(StringPool&&) = default;             // NOLINT(performance-noexcept-move-constructor)
  StringPool& operator=(StringPool&&) = default;  // NOLINT(performance-noexcept-move-constructor)
  // Copies the texts; they keep their ids. O(length of all texts).
  StringPool(const StringPool& other) {
    for (const std::string& text : other.texts_) intern(text);
  }
  StringPool& operator=(const StringPool&) = delete;

  // Returns the id of `text`, adding it when new. Amortised O(length).
  StringId intern(std::string_view text) {
    if (auto it = ids_.find(text); it != ids_.end()) return it->second;
    const std::string& stored = texts_.emplace_back(text);
    const auto id = static_cast<StringId>(texts_.size() - 1);
    ids_.emplace(stored, id);
    return id;
  }
  std::string_view text(StringId id) const { return texts_[id]; }
  std::optional<StringId> find(std::string_view text) const {
    const auto it = ids_.find(text);
    return it == ids_.end() ? std::nullopt : std::optional(it->second);
  }
  size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // a deque never moves its elements, so views into them stay valid
  std::unordered_map<std::string_view, StringId> ids_;
};

}  // namespace stageline
