// The recommendations of the overview, and the facts they are based on. Thresholds are the plugin's:
// docs/analyses/tb-overview.md.
#pragma once

#include "profile/function_events.h"
#include "profile/tb_run.h"

namespace stageline {

// The operator calls of a rank with their host, device and tensor-core time. They are the rows of tb-operator, and the
// overview uses them to judge operators that could use tensor cores. Definitions: docs/analyses/tb-operator.md.
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

// The plugin's four GPU figures: how busy and how well filled each device of a rank was. Definitions:
// docs/analyses/tb-overview.md.
struct TbDevice {  // values between 0 and 1; NaN: not recorded
  int64_t number = 0;
  int64_t kernel_count = 0;   // over the whole capture
  std::string name;           // "" when unknown
  double memory_bytes = NAN;  // memory size of the device
  int64_t compute_major = -1, compute_minor = -1;
  double utilization = NAN;    // share of the time of all steps in which some kernel ran
  double sm_efficiency = NAN;  // Σ over time of min(1, blocks per SM of the running kernels), in the same time
  double occupancy = NAN;      // estimated achieved occupancy, weighted by kernel time
  double tensor_cores = NAN;   // share of kernel time on tensor cores, known by kernel names
};
// Returns the devices that ran a kernel, by number. Shares refer to the time from the first step's start to the last
// step's end. O(n log n).
std::vector<TbDevice> tb_devices(const TbRun& run, const TbRank& rank);

struct TbOverview {  // one rank
  int32_t rank = 0;
  const Part* part = nullptr;
  std::vector<TbStep> steps;
  std::vector<TbCosts> costs;  // for each step
  int64_t dropped_steps = 0;
  TbCosts sums{};  // sums over the steps
  int64_t total_ns = 0;
  std::vector<TbDevice> devices;
  // The fields below are for recommendations.
  bool data_parallel = false, distributed_data_parallel = false, uses_nccl = false, loader_processes = false;
  double tensor_core_share = 0;  // share of the kernel time of the whole capture
  // Kernel time of operators that could use tensor cores, as a share of that of all operators.
  double eligible_share = 0;

  double average_ns(int64_t sum) const { return steps.empty() ? 0 : sum / static_cast<double>(steps.size()); }
};

// O(n log n) in the rows of the rank.
TbOverview tb_overview(const TbRun& run, const FunctionNames& names, const TbRank& rank);

struct TbAdvice {
  std::string_view id;  // "input-loading"
  double share = 0;     // the share on which the advice is based; NaN when its basis is not a share
  Text text;
};
// Returns at most one advice of each id, in the plugin's order.
std::vector<TbAdvice> tb_advice(const TbOverview& rank);

}  // namespace stageline
