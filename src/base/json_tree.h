// Parses a JSON text into a tree of values, for small files of many shapes. Traces are read event by event instead
// (base/json_events.h).
#pragma once

#include "base/value_tree.h"

namespace stageline {

struct JsonTree {
  ValueTree tree;
  // Position from which the text is damaged; elements before it are in the tree; −1: not damaged.
  int64_t broken_at = -1;
};

// Parses the text; at most 64 levels. O(bytes). Errors: kBadInput when nothing could be read (the message names `path`
// as the file).
Result<JsonTree> parse_json_tree(std::string_view text, const std::string& path);

// Does the same for a text that must be whole. Errors: kBadInput with the line and column from which it is not.
Result<ValueTree> parse_whole_json(std::string_view text, const std::string& path);

}  // namespace stageline
