// Checks whether what the user says about ranks and stages can be true.
#pragma once

#include "base/result.h"
#include "model/trace.h"
#include "pipeline/cells/layout_options.h"

namespace stageline {

// Errors: kUsage where `order` leaves out a dimension whose size the user gives as above 1; other dimensions left out
// count as 1. Whether the words of the order are dimensions at all is checked by check_rank_order().
Status check_rank_layout(const RankLayoutOptions& options);

// Returns the reason why these ranks cannot have this layout, according to process groups and messages; "" when nothing
// contradicts it. Options with such a reason are ignored in known_layout(), and outputs that show a layout give the
// reason.
Text contradiction_of(const Trace& trace, const RankLayout& stated);

}  // namespace stageline
