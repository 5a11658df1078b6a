// HTA's potential stragglers: ranks whose last long NCCL kernel starts late. Definitions:
// docs/analyses/potential-stragglers.md.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "profile/torch_view.h"

namespace stageline {

// `steps` as given; empty stands for all. Returns ranks in HTA's order. Errors: kBadInput with HTA's reasons.
Result<std::vector<int32_t>> hta_stragglers(const TorchRun& run, const std::vector<int32_t>& steps, bool steps_given,
                                            int64_t candidates);

}  // namespace stageline
