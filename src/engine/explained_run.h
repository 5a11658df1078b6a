// What explain makes of a run, as a fact of it: explain, SQL, figures and the server share one.
#pragma once

#include <memory>

#include "base/diagnostics.h"
#include "diagnosis/explanation.h"
#include "facts/run.h"

namespace stageline {

struct ExplainedRun {
  Explanation explanation;
  Diagnostics notes;  // analyses that were left out
};

// Computed once per Run. Findings of profiler traces are read off tables, which are made for that.
const ExplainedRun& explained_run(const std::shared_ptr<const Run>& run);

}  // namespace stageline
