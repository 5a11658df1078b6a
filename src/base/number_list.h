// Lists of numbers as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stageline {

// Converts "0-3,8" to {0,1,2,3,8}, sorted and without repeats. At most 1 000 000 numbers.
Result<std::vector<int32_t>> parse_number_list(std::string_view text);
// Returns "3,0,8", in the given order; ",…" stands for what follows the first `max_count`.
std::string number_list(const std::vector<int32_t>& numbers, size_t max_count = SIZE_MAX);

}  // namespace stageline
