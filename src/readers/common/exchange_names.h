// Recognises exchanges of tokens between experts, whose kernels' names alone say nothing.
#pragma once

#include <string_view>

namespace stageline {

// Returns true for annotations that follow DualPipe's convention name(phase): "dispatch(F)", "combine(B)".
bool is_exchange_annotation(std::string_view name);
// Returns true for kernels that may be such an exchange: the name of the function contains "dispatch", "combine",
// "notify" or "all to all". Whether it is one is decided by an annotation around the launch. Templates and parameters
// are not looked at.
bool is_exchange_kernel(std::string_view name);

}  // namespace stageline
