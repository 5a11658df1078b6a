// The problems that analyses/critical_path_analysis reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(critical_path, acausal, kInfo);
PROBLEM(critical_path, coverage, kWarning);
PROBLEM(critical_path, fewer_instances, kInfo);
PROBLEM(critical_path, inferred_hand_overs, kInfo);
PROBLEM(critical_path, inferred_stream_waits, kInfo);
PROBLEM(critical_path, no_window, kWarning);
PROBLEM(critical_path, one_rank, kInfo);
PROBLEM(critical_path, unsound, kWarning);

}  // namespace stageline::problem
