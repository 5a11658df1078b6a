// Writes a trace as Paddle worker logs: what the framework itself would have printed.
#pragma once

#include <string>

#include "base/result.h"
#include "model/trace.h"

namespace stageline {

// folder/workerlog.N, or folder/machineM/workerlog.N with several machines. Cells are written in
// the order they stand in the trace (a rank's job list), one burst a step, with a few ordinary
// lines between as real logs have. Chunked cells get the digit form (forward1). Errors: kIo.
Status write_worker_logs(const Trace& trace, const std::string& folder);

}  // namespace stageline
