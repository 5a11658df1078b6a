// A JSON text as a tree of values, for small files of many shapes. Traces are read event by event instead
// (base/json_events.h).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/value_tree.h"

namespace stageline {

struct JsonTree {
  ValueTree tree;
  int64_t broken_at =
      -1;  // the text is damaged from about here on: whole elements before it are in the tree; −1: whole
};

// Depth at most 64. O(bytes). Errors: kBadInput where nothing could be read (`path` is said to be the file).
Result<JsonTree> parse_json_tree(std::string_view text, const std::string& path);

}  // namespace stageline
