// The threads of a timeline: whose they are.
#pragma once

#include "readers/op_json/timeline_file.h"

namespace stageline::op_json {

// Fills in rank, stage and dp from what the threads say, and returns the lane name of each thread. `fallback_rank` is
// the rank for threads whose arguments and process ids do not give it; kUnknown for none.
std::vector<std::string> identify_threads(FileOps& file, int32_t fallback_rank);

}  // namespace stageline::op_json
