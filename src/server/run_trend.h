// Several runs of one job, in order: what a step took in each, what changed from one to the next (`stageline diff`),
// and from which run on the level is another one (base/change_points.h, as `stageline history` finds it).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/run_answers.h"

namespace stageline {

struct TrendInput {
  std::string title, path;
  RunAnswers::Read read;
};

// {runs: [{title, path, steps, step_ns, headline: [English, Chinese], why_not?: [English, Chinese], diff}],
//  changes: [{at, before_ns, after_ns, p}]}
// `diff` is what `stageline diff --json` says of the run before with a step time and this one, {} for the first and for
// runs without a pipeline; step_ns 0: a run that could not be read, or has no steps, and why. Two runs are held at a
// time. Errors: kUnavailable where no two runs have steps.
Result<std::string> trend_json(const std::vector<TrendInput>& inputs);

}  // namespace stageline
