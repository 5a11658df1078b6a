// Small answers that several front ends give.
#pragma once

#include "diagnosis/diff/diff_answer.h"
#include "diagnosis/explanation.h"

namespace stageline {

// Returns the difference between two runs as one JSON object without a line end: `stageline diff --json` prints it, and
// the viewer's Compare page shows it. It has change_ns with error_ns, headline and cause in words,
// "differences" of schedule and sizes, both "runs", the groups that the text output lists ("changes"), and the tables.
// Sentences are in both languages.
std::string diff_json(const RunDiff& diff);

// The schedules by name, for code that offers them as choices and may not include the layer that makes them.
struct ScheduleOffer {
  std::string name;
  int32_t chunks = 1;  // chunks per rank when none are asked for
};
std::vector<ScheduleOffer> schedule_list();  // in the order of schedules.def
bool knows_schedule(std::string_view name);

// The step time of a run, for comparing runs: `stageline history` keeps it, the viewer's trend draws it.
struct MeanStep {
  int64_t steps = 0;
  double ns = 0;  // outliers left out
};

// The step of explain's account, else that of the headline's (of a profile whose cells have no account). Errors:
// kUnavailable where neither is of steps: what a whole recording took says as much of its length as of its speed.
Result<MeanStep> mean_step_of(const Explanation& explanation, const std::string& path);

}  // namespace stageline
