// Long sequences: some micro-batches take longer forward and backward, on every stage.
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

Telling tell_long_sequences(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
