#include "compat/paddle_timeline/timeline_steps.h"

namespace stageline {
namespace {

bool less(const PyTime& a, const PyTime& b) { return a.us < b.us; }

}  // namespace

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
    double first = min_over<double>(log.jobs, &PaddleJob::start_us, log.jobs.front().start_us);
    steps.front().start = {first, false};
  }
  return steps;
}

void StepMerge::add(int32_t ordinal, const TimelineStep& step) {
  const size_t i = ordinal;
  if (merged_.size() <= i) merged_.resize(i + 1);
  if (!merged_[i]) merged_[i] = step;
  if (less(step.start, merged_[i]->start)) merged_[i]->start = step.start;
  if (less(merged_[i]->end, step.end)) merged_[i]->end = step.end;
}

int64_t StepMerge::write(TimelineWriter& writer, int64_t first_number) const {
  int64_t written = 0;
  for (size_t i = 0; i < merged_.size(); ++i) {
    if (!merged_[i]) continue;
    PyTime start = merged_[i]->start;
    if (i > 0 && merged_[i - 1] && less(start, merged_[i - 1]->end)) start = merged_[i - 1]->end;
    writer.step(static_cast<int64_t>(i) + first_number, start, merged_[i]->end);
    ++written;
  }
  return written;
}

}  // namespace stageline
