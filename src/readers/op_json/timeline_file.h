// Reads one file of events into rows.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/string_pool.h"
#include "readers/common/ops.h"

namespace stageline {
class Progress;
}

namespace stageline::op_json {

struct Thread {
  std::string pid, tid;  // the source's own text
  int64_t pid_number = kUnknown, tid_number = kUnknown;
  std::string name;                                     // from thread_name
  bool straggler_analysis = false, ndtimeline = false;  // by the arguments of its events
};

struct FileOps {
  std::vector<Op> ops;  // Op::lane is an index into threads
  std::vector<Thread> threads;
  StringPool names;
  Diagnostics diagnostics;
  std::vector<int32_t> lossy_steps;  // of events that were left out, in any order
  int64_t pipeline_events = 0;       // events that have any pipeline argument
};

// Errors: as Input::open, and kBadInput when the file has no array of events at all.
Result<FileOps> read_timeline(const std::string& path, uint32_t file, Progress* progress);

// Fills in rank, stage and dp from what the threads say, and returns the lane name of each thread. `fallback_rank` is
// the rank for threads whose arguments and process ids do not give it; kUnknown for none.
std::vector<std::string> identify_threads(FileOps& file, int32_t fallback_rank);

}  // namespace stageline::op_json
