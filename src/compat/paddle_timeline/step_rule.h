// V3's rule for steps, on the jobs of one log.
#pragma once

#include <vector>

#include "readers/paddle_log/scan.h"

namespace stageline {

// A time as Python holds it: float, or the integer 0 a variable was started with; they print
// differently ("0.0", "0") and compare equal.
struct PyTime {
  double us = 0;
  bool is_integer_zero = true;
};

struct TimelineStep {
  PyTime start, end;
};

// The first type that is not `default` marks steps: each of its jobs with micro-batch 0 opens one.
// The step before is closed only if its own start is not zero; its end is the end of the last line.
// The open step is closed after the last line, even when there was none ([0, 0]).
std::vector<TimelineStep> steps_as_v3(const PaddleLog& log);

// The same on cleaned jobs without V3's faults: a log without jobs has no steps, a log of `default`
// jobs has one a job, a log whose marker is lost starts at its first job.
std::vector<TimelineStep> steps_repaired(const PaddleLog& log);

}  // namespace stageline
