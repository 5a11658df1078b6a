// Communication under computation by the kind of the group ("dp", "tp", "pp", …), step by step.
#pragma once

#include <string>
#include <vector>

#include "model/table.h"
#include "profile/communication_ops.h"

namespace stageline {

using KindRows = std::vector<std::vector<Table::Value>>;  // of one rank

// Returns the rows of comm-comp-overlap-by-kind: one for each step and description of a group; none where no group has
// a description. O(n log n) in the rows.
KindRows overlap_by_kind(const TorchRun& run, const TorchRank& rank, const OpNames& op_names);

// Returns the rows of ComputationalOperatorMaskingLinearity (msprof-analyze's computational_op_masking). Each set of
// kinds ("dp,edp") has a row for each step in whose host window it communicates. Work that touches a window counts
// whole.
KindRows msprof_masking(const TorchRun& run, const TorchRank& rank, const OpNames& op_names,
                        const std::vector<std::vector<std::string>>& sets);

}  // namespace stageline
