// Writes one rank's trace as the body of a digest, and reads it back.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/trace.h"
#include "readers/digest/memory_left.h"

namespace stageline::digest {

// The trace must have one part. Times that cells share with their slices take no space.
std::string pack_trace(const Trace& trace);

// Errors: kBadInput when a column is missing, too long, or names a row that is not there; kLimit when `memory` is used
// up. `path` is for the message.
Result<Trace> unpack_trace(std::string_view body, const std::string& path, MemoryLeft& memory);

}  // namespace stageline::digest
