// Makes whole files of what is left of recordings: damaged ones, and those of processes that were killed.
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
  int64_t ranges = 0;         // and marks, counters, steps
  int64_t from_memory = 0;    // of these, only in the hot file
  int64_t unfinished = 0;     // ranges that were open
  int64_t skipped_bytes = 0;  // damage that was left behind
};

// One file per recording in `folder` (made when missing): every intact chunk as it was, then what the hot file held.
// Nothing that is there is changed or overwritten. Errors: kBadInput without recordings, kIo, kUsage when a file of
// that name exists.
Result<std::vector<Recovered>> recover(const Source& source, const std::string& folder, Diagnostics& diagnostics);

}  // namespace stageline::recording
