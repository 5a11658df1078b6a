// Writes a simulated run as Ascend PyTorch Profiler databases, one folder a rank, as the profiler and its markers
// would have left them. Tables and conventions: docs/formats/ascend.md; they are the profiler's (schema 1.2.0).
//
//   <host>_<pid>_<stamp>_ascend_pt/profiler_info_<rank>.json, profiler_metadata.json
//                                  ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_<rank>.db, analysis.db
//   truth_links.csv                every message between stages, in true time
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "exporters/ascend_db/db_options.h"
#include "model/trace.h"

namespace stageline {

// Process of rank 0; the others follow. Names of folders hold it, and the rank's profiler_info beside it tells a
// simulated profile from a real one.
inline constexpr int64_t kFirstSimulatedPid = 100'000;
// Whether this folder (…_ascend_pt or …_ascend_ms) is one that write_ascend_databases made, whole or not.
bool is_simulated_profile(const std::string& folder);

// `trace` is a simulated run of `options.schedule` (cells in the order of the schedule, parts by rank with stage and
// replica); `clock_offset_ns` by machine. Cells shrink by what must have room beside them: the loss's backward on the
// stage that holds it (MindSpeed's DualPipeV), empty pops. Same input, same bytes. Errors: kIo.
Status write_ascend_databases(Trace& trace, const std::vector<int64_t>& clock_offset_ns, const AscendDbOptions& options,
                              const std::string& folder);

}  // namespace stageline
