// One file of a Chrome timeline, read into rows.
#pragma once

#include "readers/op_json/event.h"

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

}  // namespace stageline::op_json
