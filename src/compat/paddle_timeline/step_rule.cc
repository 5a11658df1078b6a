#include "compat/paddle_timeline/step_rule.h"

#include <algorithm>

namespace stageline {

std::vector<TimelineStep> steps_as_v3(const PaddleLog& log) {
  std::vector<TimelineStep> steps;
  TimelineStep open;
  int marker = -1;
  for (const PaddleJob& job : log.jobs) {
    if (marker < 0 && log.types[job.type] != "default") marker = job.type;
    if (job.type == marker && job.micro_batch == 0) {
      if (open.start.us != 0) steps.push_back(open);
      open.start = {job.start_us, false};
    }
    open.end = {job.end_us, false};
  }
  steps.push_back(open);
  return steps;
}

std::vector<TimelineStep> steps_repaired(const PaddleLog& log) {
  if (log.jobs.empty()) return {};
  const bool only_default = std::ranges::all_of(log.types, [](const std::string& t) { return t == "default"; });
  if (only_default) {
    std::vector<TimelineStep> steps;
    for (const PaddleJob& job : log.jobs) steps.push_back({{job.start_us, false}, {job.end_us, false}});
    return steps;
  }
  std::vector<TimelineStep> steps = steps_as_v3(log);
  if (steps.front().start.is_integer_zero) {
    double first = log.jobs.front().start_us;
    for (const PaddleJob& job : log.jobs) first = std::min(first, job.start_us);
    steps.front().start = {first, false};
  }
  return steps;
}

}  // namespace stageline
