// The explanation of a run, as a fact of it: explain, SQL, figures and the server share one.
#pragma once

#include "diagnosis/explanation.h"
#include "facts/run.h"

namespace stageline {

// Computed once per Run, with offers.
const Explanation& explained_run(const Run& run);

}  // namespace stageline
