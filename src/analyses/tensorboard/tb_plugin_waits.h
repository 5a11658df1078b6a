// The distributed view of TensorBoard's profiler plugin (--compat tb). It finds waiting by matching the n-th
// communication call of every rank. Definitions and faults: docs/analyses/tb-distributed.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyses/tensorboard/tb_run.h"

namespace stageline {

struct PluginCall {  // a call such as "nccl:all_reduce"
  int64_t start_ns = 0, end_ns = 0;
  uint32_t index = 0;
  StringId name = 0;
  int64_t bytes = 0;
  std::vector<Interval> ranges;    // the call's own interval and those of its kernels, by start
  std::vector<Interval> transfer;  // for each range: its last part, as long as the shortest among the ranks
  int32_t step = -1;               // index into the rank's steps; −1: in none
};

struct PluginCalls {
  std::vector<PluginCall> calls;  // sorted by start
  bool nccl = false, gloo = false;
};
PluginCalls plugin_calls(const TbRun& run, const TbRank& rank);

// Fills `transfer`. Errors: kBadInput with the plugin's reason for not showing a distributed view.
Status split_plugin_calls(const TbRun& run, std::vector<PluginCalls>& ranks);

}  // namespace stageline
