// V3's rule for steps, applied to the jobs of one log.
#pragma once

#include <vector>

#include "readers/paddle_log/scan.h"

namespace stageline {

// A time as Python holds it: a float, or the integer 0 with which a variable was initialised. The two print differently
// ("0.0", "0") and compare equal.
struct PyTime {
  double us = 0;
  bool is_integer_zero = true;
};

struct TimelineStep {
  PyTime start, end;
};

// The first type other than `default` marks steps: each of its jobs with micro-batch 0 opens one. The previous step is
// closed only if its own start is not zero, and its end is the end of the last line. After the last line the open step
// is closed, even when there was none (which gives [0, 0]).
std::vector<TimelineStep> steps_as_v3(const PaddleLog& log);

// Does the same for cleaned jobs, without V3's bugs. A log without jobs has no steps, a log of `default` jobs has one
// step per job, and a log whose marker is lost starts at its first job.
std::vector<TimelineStep> steps_repaired(const PaddleLog& log);

}  // namespace stageline
