// The steps of worker logs: where each begins and ends, and those of all logs merged.
#pragma once

#include "compat/paddle_timeline/timeline_writer.h"

namespace stageline {

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

// Merges the steps of all logs by their ordinals as V3 does: the start is the earliest, the end the latest. When
// repairing, a log that lost steps is matched by time first.
class StepMerge {
 public:
  void add(int32_t ordinal, const TimelineStep& step);
  // Returns how many steps were written. The start of a step is raised to the end of the step before.
  int64_t write(TimelineWriter& writer, int64_t first_number) const;

 private:
  std::vector<std::optional<TimelineStep>> merged_;
};

}  // namespace stageline
