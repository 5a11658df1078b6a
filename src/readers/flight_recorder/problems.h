// The problems that readers/flight_recorder reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(flight_recorder, bad_call, kLoss);
PROBLEM_CASE(flight_recorder, bad_call, cut, kLoss);
PROBLEM(flight_recorder, damaged, kLoss);
PROBLEM(flight_recorder, host_stamps, kInfo);
PROBLEM(flight_recorder, local_ranks, kWarning);
PROBLEM(flight_recorder, no_frames, kInfo);
PROBLEM(flight_recorder, no_rank, kWarning);
PROBLEM(flight_recorder, not_a_dump, kLoss);
PROBLEM(flight_recorder, repeated_rank, kLoss);
PROBLEM(flight_recorder, unusable_dump, kLoss);
PROBLEM_CASE(flight_recorder, unusable_dump, damaged, kLoss);
PROBLEM(flight_recorder, versions, kWarning);

}  // namespace stageline::problem
