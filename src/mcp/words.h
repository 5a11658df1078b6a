// JSON in and out, as the tools need it.
#pragma once

#include <string>
#include <string_view>

#include "base/value_tree.h"

namespace stageline::mcp {

// A value as JSON with the keys of objects sorted, so that equal values give equal texts. Below a depth of 64 it is
// null.
std::string canonical_json(const Value& value, int depth = 0);

// A text of a trace with control characters and marks of direction replaced, cut in the middle to `most` bytes.
inline constexpr size_t kMaxTextBytes = 300;
std::string clean_text(std::string_view text, size_t max = kMaxTextBytes);

// Twelve hexadecimal digits that identify a text.
std::string digest(std::string_view text);

}  // namespace stageline::mcp
