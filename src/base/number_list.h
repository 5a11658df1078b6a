// Lists of numbers as people write them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stageline {

// Converts "0-3,8" to {0,1,2,3,8}, sorted and without repeats. At most 1 000 000 numbers.
Result<std::vector<int32_t>> parse_number_list(std::string_view text);

}  // namespace stageline
