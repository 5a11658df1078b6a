// Uneven data: work varies with the data from stage to stage, as where experts get unequal shares of the tokens.
// Replicas that have more of it in every step are reported with it.
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

struct UnevenDataOwn {
  double correlation = 0;  // of forwards with the backwards of the same work
  double deviation = 0;    // relative standard deviation of a cell's work
};

Telling tell_uneven_data(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
