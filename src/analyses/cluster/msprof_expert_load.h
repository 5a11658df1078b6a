// expert-load as msprof-analyze answers it (--compat msprof).
#pragma once

#include <vector>

#include "model/table.h"
#include "profile/torch_view.h"

namespace stageline {

// Returns EPTokensSummary and TopEPTokensInfo of ep_load_balance. They count kernels of type GroupedMatmul of all
// steps, forward and backward. Groups are those that parallel_group_info calls "exp"; where it calls none so, all ranks
// are one.
std::vector<Table> msprof_expert_load(const TorchRun& run);

}  // namespace stageline
