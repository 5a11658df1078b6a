// Writes one rank's trace as the body of a digest, and reads it back.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/trace.h"

namespace stageline::digest {

// The trace must have one part. Times that cells share with their slices take no space.
std::string pack_trace(const Trace& trace);

// Errors: kBadInput when a column is missing, is too long, or names a row that does not exist. `path` is named in
// messages.
Result<Trace> unpack_trace(std::string_view body, const std::string& path);

}  // namespace stageline::digest
