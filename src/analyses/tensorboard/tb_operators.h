// The operator calls of a rank with their host, device and tensor-core time: rows of tb-operator, and what the overview
// says about operators that could use tensor cores. Definitions: docs/analyses/tb-operator.md.
#pragma once

#include <cstdint>
#include <functional>

#include "analyses/tensorboard/tb_run.h"
#include "profile/function_events.h"

namespace stageline {

struct TbOperator {
  StringId name = 0;
  uint32_t slice = kNoSliceIndex;
  int64_t host_ns = 0, self_host_ns = 0;      // self: without the calls within, operators or runtime
  int64_t device_ns = 0, self_device_ns = 0;  // kernels, copies, memsets; self: of its own launches
  int64_t tensor_ns = 0, self_tensor_ns = 0;  // of these, kernels on tensor cores
  int64_t self_kernel_ns = 0;
  bool eligible = false;         // it, or what it calls, may use tensor cores
  bool bottom_eligible = false;  // and nothing it calls may
};

// Calls `visit` for every operator call of the rank, by thread, callers before callees. Returns the time of all
// kernels, whoever launched them, in ns. O(n) in the rows and slices of the rank.
int64_t for_each_tb_operator(const TbRun& run, const FunctionNames& names, const TorchRank& rank,
                             const std::function<void(const TbOperator& call)>& visit);

// Kernel time of the operators that could use tensor cores, as a share; 0 without kernels.
double tb_eligible_share(const TbRun& run, const FunctionNames& names, const TorchRank& rank);

}  // namespace stageline
