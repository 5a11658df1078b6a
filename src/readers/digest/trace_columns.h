// One rank's trace as the body of a digest, and back.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/trace.h"

namespace stageline::digest {

// Of a trace of one part. Times that cells share with their slices take no room.
std::string pack_trace(const Trace& trace);

// Errors: kBadInput when a column is missing, too long, or names a row that is not there. `path` is for the message.
Result<Trace> unpack_trace(std::string_view body, const std::string& path);

}  // namespace stageline::digest
