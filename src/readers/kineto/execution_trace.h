// Execution traces (torch.profiler.ExecutionTraceObserver; Chakra's JSON): graphs of operators and tensors without
// times, laid over the profile of the same run.
//
//   node  attr rf_id 10  ──  event  args "Record function id" 10   (older Kineto: "External id")
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace stageline::kineto {

bool looks_like_execution_trace(std::string_view head);

// Fills Part::graph_nodes of the ranks that the traces belong to: by rank in their names; one trace and one rank belong
// together. A trace whose names differ from the profile's is of another run and left out; all is said in the
// trace's diagnostics. Reads each paired profile's bytes once more.
void lay_over(const std::vector<std::string>& paths, Trace& trace);

}  // namespace stageline::kineto
