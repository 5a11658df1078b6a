// Merges call trees of several ranks, of one run or two: one tree of paths, with a column of times for each rank. A
// difference between ranks or runs is then a subtraction, node by node.
//
//   rank 0   step › linear 4 ms          step ›  linear   4 ms │ 5 ms
//   rank 1   step › linear 5 ms › copy   ───▶      › copy    – │ 1 ms
//
// Two paths are equal when all names and kinds of frames on them are.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/call_tree.h"

namespace stageline {

struct MergedCalls {
  struct Node {
    uint32_t parent = 0;  // comes before this node; node 0, the root, is its own parent
    StringId frame = 0;   // index into `frames`
    FrameKind kind = FrameKind::kRoot;
    bool is_rest = false;  // stands for everything below its parent that is left out, added up; it has no frame
  };
  std::vector<Node> nodes;
  StringPool frames;
  // Index: [column][node]; a node's own, without what is below it.
  std::vector<std::vector<int64_t>> host_ns, device_ns, calls;
  size_t left_out = 0;  // paths that have no node of their own and count in a rest
  double max_left_out =
      0;  // the largest share that one of them has of its column's host or device time, with all below it
};

// Keeps at most `max_nodes` paths (nodes for the rests come on top). It keeps those with the largest share of the host
// or device time of any column, counted with everything below them; among equal shares the earlier path. O(nodes of all
// columns).
MergedCalls merge_calls(const std::vector<const CallTree*>& columns, size_t max_nodes);

}  // namespace stageline
