// expert-load as msprof-analyze answers it (--compat msprof).
#pragma once

#include <vector>

#include "model/table.h"
#include "profile/torch_view.h"

namespace stageline {

// Returns EPTokensSummary and TopEPTokensInfo of ep_load_balance: kernels of type GroupedMatmul of all steps, forward
// and backward, and groups that parallel_group_info calls "exp"; all ranks are one group where none is called so.
std::vector<Table> msprof_expert_load(const TorchRun& run);

}  // namespace stageline
