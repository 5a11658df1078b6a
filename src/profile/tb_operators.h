// The operator calls of a rank with their host, device and tensor-core time. They are the rows of tb-operator, and the
// overview uses them to judge operators that could use tensor cores. Definitions: docs/analyses/tb-operator.md.
#pragma once

#include <cstdint>
#include <functional>

#include "profile/function_events.h"
#include "profile/tb_run.h"

namespace stageline {

struct TbOperator {
  StringId name = 0;
  uint32_t slice = kNoSliceIndex;
  int64_t host_ns = 0, self_host_ns = 0;      // self: without the calls inside, operators or runtime calls
  int64_t device_ns = 0, self_device_ns = 0;  // kernels, copies and memsets; self: only those of its own launches
  int64_t tensor_ns = 0, self_tensor_ns = 0;  // kernels on tensor cores, as part of the device time
  int64_t self_kernel_ns = 0;
  bool eligible = false;         // the operator itself, or one that it calls, may use tensor cores
  bool bottom_eligible = false;  // it may use tensor cores, and none of the operators it calls may
};

// Calls `visit` for every operator call of the rank, thread by thread, callers before callees. Returns the time of all
// kernels in ns, whoever launched them. O(n) in the rows and slices of the rank.
int64_t for_each_tb_operator(const TbRun& run, const FunctionNames& names, const TorchRank& rank,
                             const std::function<void(const TbOperator& call)>& visit);

// Returns the kernel time of operators that could use tensor cores, as a share of that of all operators; 0 when there
// are no kernels.
double tb_eligible_share(const TbRun& run, const FunctionNames& names, const TorchRank& rank);

}  // namespace stageline
