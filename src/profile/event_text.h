// Fetches the source's own text of one event from its file, on demand: all arguments of a slice, whatever they are.
#pragma once

#include "base/gzip_index.h"
#include "model/trace.h"

namespace stageline {

// Checks that the file is still the one that was read (same size and time of change). Errors: kUnavailable when it
// cannot be opened again, kBadInput when it changed.
Status check_unchanged(const SourceRef& file);

// Keeps restart points of gzip files between requests, so that a second request for the same file inflates little. One
// object serves one reader of a trace; it must not be used by several threads at once.
class EventTexts {
 public:
  // The JSON object of slice `slice` of `part`, as the file has it. Errors: kUnavailable when the source keeps no
  // positions or was standard input, kBadInput when the file changed since it was read, kIo.
  Result<std::string> text(const Part& part, uint32_t slice);

 private:
  // Reads decompressed bytes; fewer than `size` at the file's end.
  Result<std::string> read(const std::string& path, int64_t offset, size_t size);

  std::map<std::string, GzipIndex> indexes_;
};

// Returns the same for a single request, without keeping restart points.
Result<std::string> event_text(const Part& part, uint32_t slice);

// Returns the slice of the event at `index` of traceEvents (Slices::file_index); kNoSliceIndex when that event did not
// become a slice.
uint32_t slice_of_index(const Part& part, int64_t index);

// Arguments of all events of a rank as columns, read from its files again, because slices keep only those that analyses
// use.
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
