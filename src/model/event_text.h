// The source's own text of one event, fetched from its file on demand: all arguments of a slice.
#pragma once

#include <map>
#include <string>

#include "base/gzip_index.h"
#include "base/result.h"
#include "model/trace.h"

namespace stageline {

// That the file is still the one that was read. Errors: kUnavailable when it cannot be opened again, kBadInput
// when it changed.
Status check_unchanged(const SourceRef& file);

// Keeps restart points of gzip files between requests, so that a second one of the same file is short. One
// object per reader of a trace; not for several threads at once.
class EventTexts {
 public:
  // The JSON object of slice `slice` of `part`, as the file has it. Errors: kUnavailable when the source keeps no
  // positions or was standard input, kBadInput when the file changed since it was read, kIo.
  Result<std::string> text(const Part& part, uint32_t slice);

 private:
  std::map<std::string, GzipIndex> indexes_;
};

// One request.
Result<std::string> event_text(const Part& part, uint32_t slice);

// The slice whose event stands at `index` of traceEvents (Slices::file_index); kNoSliceIndex when it is no slice.
uint32_t slice_of_index(const Part& part, int64_t index);

}  // namespace stageline
