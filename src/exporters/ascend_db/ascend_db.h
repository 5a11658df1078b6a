// Writes a simulated run as Ascend PyTorch Profiler databases, one folder for each rank, as the profiler and its
// markers would have left them. The tables and conventions are the profiler's (schema 1.2.0) and are described in
// docs/formats/ascend.md.
//
//   <host>_<pid>_<stamp>_ascend_pt/profiler_info_<rank>.json, profiler_metadata.json
//                                  ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_<rank>.db, analysis.db
//   truth_links.csv                every message between stages, in true time
#pragma once

#include "exporters/ascend_db/plan.h"

namespace stageline {

// The process id of rank 0; the other ranks have the ids that follow. The names of the folders contain it.
inline constexpr int64_t kFirstSimulatedPid = 100'000;

// `trace` is a simulated run of `options.schedule`: its cells are in the order of the schedule, and its parts in the
// order of ranks, each with stage and replica. `clock_offset_ns` holds one offset for each machine. Cells are shortened
// to make room for further marks: the backward pass of the loss, on the stage that holds it (MindSpeed's DualPipeV),
// and empty pops. The same input gives the same bytes. Errors: kIo.
Status write_ascend_databases(Trace& trace, const std::vector<int64_t>& clock_offset_ns, const AscendDbOptions& options,
                              const std::string& folder);

}  // namespace stageline
