// The calls of modules of a rank: a tree with sums, and the module of each slice.
#pragma once

#include "profile/function_events.h"
#include "profile/torch_view.h"

namespace stageline {

struct ModuleSums {
  int64_t occurrences = 0, operators = 0;
  int64_t host_ns = 0, self_host_ns = 0, device_ns = 0, self_device_ns = 0;
  // Time of backward operators whose forward operator the module called.
  int64_t backward_host_ns = 0, self_backward_host_ns = 0, backward_device_ns = 0, self_backward_device_ns = 0;
  // Of operators whose FLOPs are known, modules below included: device work, FLOPs, and the time of these at the peak.
  double flops = 0, flops_ns = 0, peak_ns = 0;
  void add(const ModuleSums& other);
};

struct ModuleNode {     // all calls of one module from one place in the tree of modules
  int32_t parent = -1;  // it stands before the node; −1: a top node
  int32_t depth = 0;
  std::string name;        // "Linear_0": class and number; for Lightning the path
  int64_t module_id = -1;  // −1 for ranges, which have none
  ModuleSums sums;
};

struct ModuleAnswer {
  int32_t rank = 0;
  std::vector<ModuleNode> nodes;  // callers first, siblings in the order of their first calls
  bool lightning = false;         // the modules come from "[pl][module]" ranges
  // For each slice, if requested: the call at or around it, of device work around its launch. node −1: none.
  struct OfSlice {
    int32_t node = -1;
    bool backward = false;  // it is of the backward of the call
  };
  std::vector<OfSlice> of_slice;  // empty where no module was recorded
};

// Counts every call once, on whatever thread it is. O(slices), and O(n log n) in modules.
ModuleAnswer module_answer(const TorchRun& run, size_t part, const FunctionNames& names, bool of_slices = false);

// Returns a path such as "Net_0/Linear_1".
std::string module_path(const ModuleAnswer& answer, size_t node);

// Returns the name without the profiler's prefix: "nn.Module: ", "[pl][module]Type: ".
std::string module_name(std::string_view slice_name);

}  // namespace stageline
