// Python pickles as plain data: numbers, texts, lists, tuples and dictionaries, of protocols 2 to 5. Nothing is ever
// imported or called: an opcode that would do so is refused by its name.
// Source of the opcodes: Python's Lib/pickletools.py and PEPs 307, 3154, 574.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/value_tree.h"

namespace stageline {

struct PickleTree {
  ValueTree tree;
  // Where reading ended before the end of the pickle, and why; what stood before is in the tree, and the containers
  // that were open then are marked (Value::is_cut). −1: all was read.
  int64_t broken_at = -1;
  std::string why_broken;
};

// The bytes of one pickle, which the tree keeps; zero bytes after it do no harm. Tuples and sets become lists, numbers
// beyond 64 bits nothing. O(bytes), at most 28 bytes of memory a byte of input. Errors: kBadInput where this is no
// pickle of plain data (`path` is said to be the file).
Result<PickleTree> parse_pickle(std::string bytes, const std::string& path);

// Whether these first bytes begin a pickle of protocol 2 to 5.
bool begins_pickle(std::string_view head);

}  // namespace stageline
