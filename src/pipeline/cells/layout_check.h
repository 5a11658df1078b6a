// Whether what the user says of ranks and stages can be.
#pragma once

#include <string>

#include "base/result.h"
#include "model/trace.h"
#include "pipeline/cells/layout_options.h"

namespace stageline {

// Errors: kUsage for an order that leaves out a dimension whose size is said to be above 1; what else it leaves out
// counts as 1. check_rank_order() judges its words.
Status check_rank_layout(const RankLayoutOptions& options);

// Why a layout cannot be that of these ranks, by process groups and messages: "" when nothing speaks against it.
// known_layout() passes over options that this speaks against; whoever shows a layout says so.
std::string contradiction_of(const Trace& trace, const RankLayout& said);

}  // namespace stageline
