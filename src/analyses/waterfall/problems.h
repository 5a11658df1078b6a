// The problems that analyses/waterfall reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(waterfall, broken, kWarning);
PROBLEM(waterfall, clock_free, kInfo);
PROBLEM(waterfall, latency, kInfo);
PROBLEM_CASE(waterfall, latency, both, kInfo);
PROBLEM_CASE(waterfall, latency, gaps, kInfo);
PROBLEM(waterfall, outliers, kInfo);
PROBLEM(waterfall, overlap, kInfo);
PROBLEM(waterfall, unnumbered, kInfo);
PROBLEM(waterfall, without_producer, kInfo);

}  // namespace stageline::problem
