// The problems that readers/recording reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(recording, bad_chunk, kLoss);
PROBLEM(recording, bad_clock, kWarning);
PROBLEM(recording, bad_device_time, kWarning);
PROBLEM(recording, bad_handle, kLoss);
PROBLEM(recording, bad_time, kLoss);
PROBLEM(recording, capture, kWarning);
PROBLEM(recording, clock_step, kInfo);
PROBLEM(recording, cut, kLoss);
PROBLEM(recording, damaged, kLoss);
PROBLEM(recording, device_refused, kWarning);
PROBLEM(recording, guard, kInfo);
PROBLEM(recording, kernels, kWarning);
PROBLEM(recording, kernels_end, kInfo);
PROBLEM(recording, lost_records, kLoss);
PROBLEM(recording, names, kWarning);
PROBLEM(recording, newer, kWarning);
PROBLEM(recording, newest_only, kInfo);
PROBLEM(recording, no_event, kWarning);
PROBLEM(recording, no_ring, kLoss);
PROBLEM(recording, not_closed, kInfo);
PROBLEM(recording, one_queue, kWarning);
PROBLEM(recording, other_run, kLoss);
PROBLEM(recording, rank_unknown, kWarning);
PROBLEM(recording, reentrant, kLoss);
PROBLEM(recording, ring_full, kLoss);
PROBLEM(recording, too_deep, kLoss);
PROBLEM(recording, torn_tail, kLoss);
PROBLEM(recording, unfinished, kInfo);
PROBLEM(recording, unfinished_device, kWarning);
PROBLEM(recording, unreadable_file, kLoss);
PROBLEM(recording, unusable_file, kLoss);
PROBLEM_CASE(recording, unusable_file, empty, kLoss);

}  // namespace stageline::problem
