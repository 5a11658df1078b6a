// Reads the JSON of rocprofv3 (--output-format json), PID_results.json. Fields and what becomes of them:
// docs/formats/rocpd.md.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "readers/rocpd/record.h"

namespace stageline {
class Progress;
}

namespace stageline::rocpd {

bool is_tool_json(std::string_view head);

// Errors: those of Input when nothing was read; kBadInput when nothing in it could be drawn.
Result<Record> read_tool_json(const std::string& path, Progress* progress);

}  // namespace stageline::rocpd
