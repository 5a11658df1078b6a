// The exposed tail: collectives and the optimizer after (or before) all compute of a step, and idle time before these.
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

struct TailOwn {
  double own_ns = 0, others_ns = 0;  // its time and that of the other stages, or of its twin
  // The name of the counterpart of a tail that gathers or scatters. The counterpart moves as many bytes back between
  // the same ranks and takes far less time.
  std::string twin = {};
  // Whether the time of some stage holds no waiting for a rank that was not read.
  bool known = true;
};

Telling tell_tail(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
