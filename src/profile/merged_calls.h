// Call trees of several ranks, of one run or two, laid over each other: one tree of paths, a column of times for each
// rank. What differs between ranks or runs is then a subtraction, node by node.
//
//   rank 0   step › linear 4 ms          step ›  linear   4 ms │ 5 ms
//   rank 1   step › linear 5 ms › copy   ───▶      › copy    – │ 1 ms
//
// Paths are equal where all names and kinds of frames on them are.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/call_tree.h"

namespace stageline {

struct MergedCalls {
  struct Node {
    uint32_t parent = 0;  // stands before this node; of node 0, the root, itself
    StringId frame = 0;   // into `frames`
    FrameKind kind = FrameKind::kRoot;
    bool is_rest = false;  // what below its parent is left out, added up: it has no frame
  };
  std::vector<Node> nodes;
  StringPool frames;
  // [column][node], of the node itself without what is below it.
  std::vector<std::vector<int64_t>> host_ns, device_ns, calls;
  size_t left_out = 0;  // paths that stand in no node but a rest
  double most_left_out =
      0;  // the largest share that one of them has of its column's host or device time, with all below it
};

// At most `most_nodes` paths are kept (their rests come on top): those which in any column have the largest share of
// its host or device time, with all below them. Of equal shares the earlier ones. O(nodes of all columns).
MergedCalls merge_calls(const std::vector<const CallTree*>& columns, size_t most_nodes);

}  // namespace stageline
