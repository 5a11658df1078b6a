// JSON in and out, as the tools need it.
#pragma once

#include <string>
#include <string_view>

#include "base/value_tree.h"

namespace stageline::mcp {

// A value as JSON, keys of objects in order: equal for equal values. Deeper than 64 it ends in null.
std::string canonical_json(const Value& value, int depth = 0);

// A text of a trace: control characters and marks of direction replaced, cut in the middle to `most` bytes.
inline constexpr size_t kMostTextBytes = 300;
std::string clean_text(std::string_view text, size_t most = kMostTextBytes);

// Twelve hexadecimal digits of a text.
std::string digest(std::string_view text);

}  // namespace stageline::mcp
