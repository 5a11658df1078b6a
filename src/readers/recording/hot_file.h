// Reads the hot file of a recording: what its process had not yet written when it was killed, or has not written yet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "readers/recording/rows.h"

namespace stageline::recording {

struct HotContent {
  Content content;                      // rows in the rings, names, lanes, and drops that no GAP chunk reports
  std::vector<Row> open;                // ranges that have not ended
  std::vector<std::string> open_bytes;  // for each, its bytes as in memory
  uint32_t pid = 0;
  std::string raw;                // the bodies of RAW payloads, for recovery; ring by ring, as `blocks`
  std::vector<size_t> raw_begin;  // where each block begins
};

bool is_hot_file(std::string_view head);

// Reads the rings as they are now. The process may be writing meanwhile: counters are read before and after the
// records, and records that were taken out of a ring in between are skipped. (It is in the cold file, which is
// therefore read after this one.) Errors: kIo; kBadInput when it is not a hot file. Takes no more memory than the
// file's own numbers say and the file holds.
Result<HotContent> read_hot(const std::string& path);

}  // namespace stageline::recording
