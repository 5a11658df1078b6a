// Builds the operator trees of TensorBoard's profiler plugin (torch_tb_profiler 0.4.3, op_tree.py and node.py), for
// answers in its own terms. They differ from Slices::parent:
//
//   - nodes are operators, ProfilerStep, nn.Module calls and the nccl: and gloo: ranges of five collectives; other
//     annotations and Python frames are not there;
//   - a range that overlaps its thread's open one is dropped. Ends are compared as sums of doubles in microseconds, so
//     that on long-running hosts a range that ends where the next begins may lose it;
//   - an operator whose only child has its name takes the child's place, children and calls.
//
// The plugin's rule for modules of the backward pass never applies, as it looks for arrows of a category that Kineto
// does not write.
//
// Device time is attached to runtime calls only; driver calls (cuLaunchKernel, as made by Triton) have none.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"

namespace stageline {

struct TbNode {
  enum class Type : uint8_t { kRoot, kOperator, kUncounted, kModule, kStep, kOther };
  static constexpr int32_t kNone = -1;

  double start_us = 0, end_us = 0;  // as the plugin holds them; for roots the extent of their children
  int64_t host_ns = 0, self_host_ns = 0;
  int64_t device_ns = 0, self_device_ns = 0;
  uint32_t slice = kNoSliceIndex;  // kRoot has none
  int32_t parent = kNone;          // comes before the node
  Type type = Type::kOther;
  bool counted = true;  // false when its parent absorbed it
};

struct TbTree {
  std::vector<TbNode> nodes;           // by thread, parents first, siblings by time; includes absorbed ones
  std::vector<int32_t> root_of_lane;   // for each lane of the part; kNone
  std::vector<int32_t> node_of_slice;  // for each slice its node, or the node that absorbed it; kNone
};

// O(slices); no recursion.
TbTree tb_tree(const Trace& trace, const Part& part);

}  // namespace stageline
