// Communication under computation by the kind of the group ("dp", "tp", "pp", …), step by step.
#pragma once

#include <string>
#include <vector>

#include "model/table.h"
#include "profile/torch_view.h"

namespace stageline {

// Returns a row for each rank, step and description of a group; none for ranks without described groups.
Table overlap_by_kind(const TorchRun& run);

// Returns ComputationalOperatorMaskingLinearity of msprof-analyze's computational_op_masking: each set of kinds
// ("dp,edp") has a row for each rank and step in whose host window it communicates; work that touches a window counts
// whole.
Table msprof_masking(const TorchRun& run, const std::vector<std::vector<std::string>>& sets);

}  // namespace stageline
