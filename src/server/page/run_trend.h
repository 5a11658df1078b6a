// Compares several runs of one job, in order. It gives the step time of each, the change from one run to the next
// (`stageline diff`), and the run from which the level differs (base/change_points.h, as in `stageline history`).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/page/run_answers.h"

namespace stageline {

struct TrendInput {
  std::string title, path;
  RunAnswers::Read read;
};

// {runs: [{title, path, change_share, steps, step_ns, headline: [English, Chinese], why_not?: [English, Chinese],
// diff}],
//  changes: [{at, before_ns, after_ns, p}]}
// `diff` is the output of `stageline diff --json` for this run and the previous one with a step time. It is {} for the
// first run and for runs without a pipeline. step_ns is 0 for a run that could not be read or has no steps, and why_not
// gives the reason. Two runs are held in memory at a time. Errors: kUnavailable where no two runs have steps.
Result<std::string> trend_json(const std::vector<TrendInput>& inputs);

}  // namespace stageline
