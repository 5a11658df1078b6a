// Names of expert parallelism's exchanges of tokens, where kernels' names alone say nothing.
#pragma once

#include <string_view>

namespace stageline {

// Annotations by DualPipe's convention name(phase): "dispatch(F)", "combine(B)".
bool is_exchange_annotation(std::string_view name);
// A kernel that may be such an exchange, but only where an annotation around its launch says so: "dispatch", "combine",
// "notify" or "all to all" in the name of its function. Templates and parameters do not count.
bool is_exchange_kernel(std::string_view name);

}  // namespace stageline
