// Causes that lie in the order of work: an order left by mistake, or run without the split that the schedule is built
// on.
//
//   as it ran             its own order, its own durations, one latency for all messages     T
//   order restored        the same cells in the schedule's order                             T − what the order costs
//   split as well         whole backwards where the schedule has I and W, as the schedule    … − what the missing
//                         has them                                                               split costs
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

Telling tell_order(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
