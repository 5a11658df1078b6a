// Arguments of all events of a rank as columns, read from its files again, because slices keep only those that analyses
// use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/trace.h"

namespace stageline {

struct ArgumentColumn {
  std::string name;
  std::vector<std::string> values;  // each different value once, as JSON, in the order of first use
  std::vector<int32_t> codes;       // index into `values` per row; -1 for a row without the argument
};

// The rows that HTA's tables hold (is_hta_row), in the order of the file.
struct EventArguments {
  std::vector<uint32_t> slices;
  ArgumentColumn pid, tid;  // `values` are those of all events of the file; NaN is one if an event has none
  std::vector<ArgumentColumn> arguments;
  bool all_starts = true;       // every event of the file has a ts
  bool whole_durations = true;  // every event of the file has a duration without a fraction
};

// `names`: the arguments that are wanted; all that occur if it is empty. Reads the files of the part once.
// Errors: kUnavailable if the source keeps no positions, kBadInput if a file changed since it was read, kIo.
Result<EventArguments> event_arguments(const Trace& trace, size_t part, const std::vector<std::string>& names);

}  // namespace stageline
