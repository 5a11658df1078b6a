// The operator trees of TensorBoard's profiler plugin (torch_tb_profiler 0.4.3, op_tree.py and node.py), for answers
// in its own terms. What differs from Slices::parent:
//
//   - nodes are operators, ProfilerStep, nn.Module calls and the nccl: and gloo: ranges of five collectives; other
//     annotations and Python frames are not there;
//   - a range that overlaps its thread's open one is dropped. Ends are compared as sums of doubles in microseconds, so
//     that on long-running hosts a range that ends where the next begins may lose it;
//   - an operator whose only child has its name takes the child's place, children and calls.
//
// Its rule for modules of the backward pass never runs: it looks for arrows of a category that Kineto does not write.
//
// Device time hangs under runtime calls only: driver calls (cuLaunchKernel, as Triton makes them) have none.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"

namespace stageline {

struct TbNode {
  enum class Type : uint8_t { kRoot, kOperator, kUncounted, kModule, kStep, kOther };
  static constexpr int32_t kNone = -1;

  double start_us = 0, end_us = 0;  // as the plugin holds them; of roots the extent of their children
  int64_t host_ns = 0, self_host_ns = 0;
  int64_t device_ns = 0, self_device_ns = 0;
  uint32_t slice = kNoSliceIndex;  // kRoot: none
  int32_t parent = kNone;          // stands before the node
  Type type = Type::kOther;
  bool counted = true;  // false: absorbed by its parent
};

struct TbTree {
  std::vector<TbNode> nodes;           // by thread, parents first, siblings by time; absorbed ones too
  std::vector<int32_t> root_of_lane;   // by lane of the part; kNone
  std::vector<int32_t> node_of_slice;  // by slice: its node, of absorbed ones the node that absorbed them; kNone
};

// O(slices); no recursion.
TbTree tb_tree(const Trace& trace, const Part& part);

}  // namespace stageline
