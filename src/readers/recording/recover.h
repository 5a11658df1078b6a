// Makes complete files from what is left of recordings that were damaged or whose processes were killed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "readers/reader.h"

namespace stageline::recording {

struct Recovered {
  std::string path;
  int32_t rank = -1;
  int64_t ranges = 0;         // ranges, marks, counters and steps
  int64_t from_memory = 0;    // those of them that were only in the hot file
  int64_t unfinished = 0;     // ranges that were still open
  int64_t skipped_bytes = 0;  // bytes of damage that were left out
};

// Writes one file per recording into `folder`, which is made if it does not exist: every intact chunk unchanged, then
// the contents of the hot file. No existing file is changed or overwritten. Errors: kBadInput without recordings, kIo,
// kUsage when a file of that name exists.
Result<std::vector<Recovered>> recover(const Source& source, const std::string& folder, Diagnostics& diagnostics);

}  // namespace stageline::recording
