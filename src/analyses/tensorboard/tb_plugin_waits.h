// The distributed view of TensorBoard's profiler plugin (--compat tb): waiting by joining the n-th communication call
// of every rank. Definitions and faults: docs/analyses/tb-distributed.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyses/tensorboard/tb_run.h"

namespace stageline {

struct PluginCall {  // "nccl:all_reduce" and the like
  int64_t start_ns = 0, end_ns = 0;
  uint32_t index = 0;
  StringId name = 0;
  int64_t bytes = 0;
  std::vector<Interval> ranges;    // its own interval and its kernels', by start
  std::vector<Interval> transfer;  // of each, the end that no rank was without
  int32_t step = -1;               // index of the rank's steps; −1: in none
};

struct PluginCalls {
  std::vector<PluginCall> calls;  // by start
  bool nccl = false, gloo = false;
};
PluginCalls plugin_calls(const TbRun& run, const TbRank& rank);

// Fills `transfer`. Errors: kBadInput with the plugin's reason for showing no distributed view.
Status split_plugin_calls(const TbRun& run, std::vector<PluginCalls>& ranks);

}  // namespace stageline
