// Reads Python pickles of protocols 2 to 5 as plain data: numbers, texts, lists, tuples and dictionaries. Nothing is
// ever imported or called: an opcode that would do so is refused, and the error names it. Source of the opcodes:
// Python's Lib/pickletools.py and PEPs 307, 3154, 574.
#pragma once

#include "base/value_tree.h"

namespace stageline {

struct PickleTree {
  ValueTree tree;
  // The position and reason when reading ended before the end of the pickle. Everything before it is in the tree, and
  // the containers that were open then are marked (Value::is_cut). −1: everything was read.
  int64_t broken_at = -1;
  std::string why_broken;
};

// Parses the bytes of one pickle. The tree keeps the bytes. Zero bytes after the pickle are ignored. Tuples and sets
// become lists; numbers beyond 64 bits become "nothing". O(bytes), at most 28 bytes of memory for each byte of input.
// Errors: kBadInput when this is not a pickle of plain data (the message names `path` as the file).
Result<PickleTree> parse_pickle(std::string bytes, const std::string& path);

// Returns true when these first bytes begin a pickle of protocol 2 to 5.
bool begins_pickle(std::string_view head);

}  // namespace stageline
