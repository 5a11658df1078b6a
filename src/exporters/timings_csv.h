// The timings CSV ("bring your own timings", docs/formats/op-table.md): the op table that the
// op-table reader takes.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/trace.h"

namespace stageline {

// Writes the columns dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc. Times are seconds with every
// digit. `clock_offset_ns` (one for each machine; may be empty) is subtracted from the times. Errors: kIo.
Status write_timings_csv(const Trace& trace, const std::vector<int64_t>& clock_offset_ns, const std::string& path);

}  // namespace stageline
