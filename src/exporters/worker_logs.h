// Files of a simulated run: Paddle worker logs, as the framework itself would have printed them, and its timings.
#pragma once

#include "model/trace.h"

namespace stageline {

// Writes folder/workerlog.N, or folder/machineM/workerlog.N when there are several machines. Cells are written in the
// order of the trace (a rank's job list), in one burst per step. A few ordinary lines are between the bursts, as in
// real logs. Cells with chunks get the form with a digit (forward1). Errors: kIo.
Status write_worker_logs(const Trace& trace, const std::string& folder);

// The timings CSV ("bring your own timings", docs/formats/op-table.md): the op table that the op-table reader takes.
// Writes the columns dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc. Times are seconds with every
// digit. `clock_offset_ns` (one for each machine; may be empty) is subtracted from the times. Errors: kIo.
Status write_timings_csv(const Trace& trace, const std::vector<int64_t>& clock_offset_ns, const std::string& path);

}  // namespace stageline
