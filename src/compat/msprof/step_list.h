// Lists the steps that exist, for users who asked for another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "base/text.h"

namespace stageline {

inline constexpr size_t kMaxStepsListed = 10'000;

// Returns "10, 11"; for more than eight steps "8 to 4007".
inline std::string step_list(const std::set<int64_t>& steps) {
  constexpr size_t kMaxNamed = 8;
  if (steps.empty()) return {};
  if (steps.size() > kMaxNamed) return std::to_string(*steps.begin()) + " to " + std::to_string(*steps.rbegin());
  std::string text;
  for (const int64_t step : steps) append_item(text, std::to_string(step));
  return text;
}

}  // namespace stageline
