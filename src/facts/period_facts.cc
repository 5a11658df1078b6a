#include "facts/period_facts.h"

#include "facts/pipeline_facts.h"

namespace stageline {
namespace {

struct PeriodsFact {
  using Value = StepPeriods;
  static Value make(const Run& run) { return step_periods(run.trace(), sums_of(run)); }
};

}  // namespace

const StepPeriods& periods_of(const Run& run) { return run.fact<PeriodsFact>(); }

}  // namespace stageline
