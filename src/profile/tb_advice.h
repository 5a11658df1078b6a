// The recommendations of the overview, and the facts they are based on. Thresholds are the plugin's:
// docs/analyses/tb-overview.md.
#pragma once

#include <string_view>
#include <vector>

#include "profile/function_events.h"
#include "profile/tb_devices.h"
#include "profile/tb_run.h"

namespace stageline {

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
