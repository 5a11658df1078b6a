// The problems that readers/perfetto reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(pftrace, bad_compressed, kLoss);
PROBLEM(pftrace, bad_time, kLoss);
PROBLEM(pftrace, clipped_device_times, kInfo);
PROBLEM(pftrace, damaged, kLoss);
PROBLEM(pftrace, damaged_packet, kLoss);
PROBLEM(pftrace, huge_packet, kLoss);
PROBLEM(pftrace, json_twin, kInfo);
PROBLEM(pftrace, lost_packets, kLoss);
PROBLEM(pftrace, nested_compressed, kLoss);
PROBLEM(pftrace, no_common_clock, kWarning);
PROBLEM(pftrace, no_sequence, kInfo);
PROBLEM(pftrace, no_state, kLoss);
PROBLEM(pftrace, no_time, kLoss);
PROBLEM(pftrace, open_state, kInfo);
PROBLEM(pftrace, other_data, kInfo);
PROBLEM(pftrace, processes_as_ranks, kInfo);
PROBLEM(pftrace, read_stopped, kLoss);
PROBLEM(pftrace, remote_clocks, kWarning);
PROBLEM(pftrace, repeated_rank, kLoss);
PROBLEM(pftrace, same_rank_twice, kWarning);
PROBLEM(pftrace, too_many, kLoss);
PROBLEM(pftrace, truncated, kLoss);
PROBLEM(pftrace, unknown_clock, kWarning);
PROBLEM(pftrace, unknown_counter, kLoss);
PROBLEM(pftrace, unknown_queue, kLoss);
PROBLEM(pftrace, unknown_type, kLoss);
PROBLEM(pftrace, unmatched_begin, kWarning);
PROBLEM(pftrace, unmatched_end, kLoss);
PROBLEM(pftrace, unusable_file, kLoss);
PROBLEM_CASE(pftrace, unusable_file, foreign, kLoss);

}  // namespace stageline::problem
