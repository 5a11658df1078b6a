// Writes a trace as Paddle worker logs, as the framework itself would have printed them.
#pragma once

#include <string>

#include "base/result.h"
#include "model/trace.h"

namespace stageline {

// Writes folder/workerlog.N, or folder/machineM/workerlog.N when there are several machines. Cells are written in the
// order of the trace (a rank's job list), in one burst per step. A few ordinary lines are between the bursts, as in
// real logs. Cells with chunks get the form with a digit (forward1). Errors: kIo.
Status write_worker_logs(const Trace& trace, const std::string& folder);

}  // namespace stageline
