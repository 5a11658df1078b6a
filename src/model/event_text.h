// The source's own text of one event, fetched from its file on demand: all arguments of a slice.
#pragma once

#include <string>

#include "base/result.h"
#include "model/trace.h"

namespace stageline {

// That the file is still the one that was read. Errors: kUnavailable when it cannot be opened again, kBadInput
// when it changed.
Status check_unchanged(const SourceRef& file);

// The JSON object of slice `slice` of `part`, as the file has it. Errors: kUnavailable when the source
// keeps no positions or was standard input, kBadInput when the file changed since it was read, kIo.
Result<std::string> event_text(const Part& part, uint32_t slice);

}  // namespace stageline
