#include "engine/mean_step.h"

#include "base/error_words.h"

namespace stageline {

Result<MeanStep> mean_step_of(const Explanation& explanation, const std::string& path) {
  for (const MeanStep& step : {MeanStep{explanation.steps, explanation.step_ns},
                               MeanStep{explanation.headline.steps, explanation.headline.step_ns}})
    if (step.steps > 0 && step.ns > 0) return step;
  return worded_error(ErrorCode::kUnavailable, "refused.no_steps", {}, {path});
}

}  // namespace stageline
