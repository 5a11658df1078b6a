// What the overview recommends, and what it stands on. Thresholds are the plugin's: docs/analyses/tb-overview.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyses/tensorboard/tb_devices.h"
#include "analyses/tensorboard/tb_run.h"
#include "profile/function_events.h"

namespace stageline {

struct TbOverview {  // of one rank
  int32_t rank = 0;
  const Part* part = nullptr;
  std::vector<TbStep> steps;
  std::vector<TbCosts> costs;  // by step
  int64_t dropped_steps = 0;
  TbCosts sums{};  // over the steps
  int64_t total_ns = 0;
  std::vector<TbDevice> devices;
  bool any_device = false, any_communication = false;  // the plugin shows columns by these
  // For recommendations.
  bool data_parallel = false, distributed_data_parallel = false, uses_nccl = false;
  double tensor_core_share = 0;  // of the kernel time of the capture
  double eligible_share = 0;     // kernel time of operators that could use tensor cores, of that of all operators

  double average_ns(int64_t sum) const {
    return steps.empty() ? 0 : static_cast<double>(sum) / static_cast<double>(steps.size());
  }
};

// Fills in what recommendations stand on.
void tb_note_facts(const TbRun& run, const FunctionNames& function_names, const TorchRank& rank, TbOverview& out);

struct TbAdvice {
  std::string_view id;  // "input-loading"
  double share = 0;     // what it stands on; NaN where that is no share
  std::string text;
};
// At most one of each id, in the plugin's order.
std::vector<TbAdvice> tb_advice(const TbOverview& rank);

}  // namespace stageline
