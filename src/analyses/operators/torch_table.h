// The table that torch.profiler prints, character for character: prof.key_averages(…).table(…) of torch 2.13.
//
// torch adds up microseconds as doubles, counted from the start of the capture; averages over 2, 4, … calls often lie
// exactly between two printable numbers, and the rounding error decides. So this file adds up as torch does.
#pragma once

#include <string>

#include "analyses/operators/operator_groups.h"
#include "analyses/operators/operator_options.h"

namespace stageline::operators {

// Empty when there are no events, as torch prints it. O(events · log events).
std::string torch_table(const Part& part, const Trace& trace, const FunctionNames& names, const OperatorGroups& groups,
                        const GroupOptions& grouping, const TorchTableOptions& options);

}  // namespace stageline::operators
