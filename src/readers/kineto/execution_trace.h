// Lays execution traces (torch.profiler.ExecutionTraceObserver; Chakra's JSON) over the profile of the same run. They
// are graphs of operators and tensors without times.
//
//   node  attr rf_id 10  ──  event  args "Record function id" 10   (older Kineto: "External id")
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace stageline::kineto {

bool looks_like_execution_trace(std::string_view head);

// Fills Part::graph_nodes of the ranks that the traces belong to. Trace and rank are paired by the rank in the trace's
// name; a single trace belongs to a single rank. A trace whose names differ from the profile's comes from another run
// and is left out; the trace's diagnostics report all of this. Each paired profile is read once more.
void lay_over(const std::vector<std::string>& paths, Trace& trace);

}  // namespace stageline::kineto
