// The hot file of a recording: what its process had not written when it was killed, or has not written yet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "readers/recording/rows.h"

namespace stageline::recording {

struct HotContent {
  Content content;                      // rows in the rings, names, lanes, drops that no GAP said
  std::vector<Row> open;                // ranges that nobody has ended
  std::vector<std::string> open_bytes;  // of each, as it lay in memory
  uint32_t pid = 0;
  std::string raw;                // RAW payloads' bodies: for recovery, ring by ring as `blocks`
  std::vector<size_t> raw_begin;  // of each block
};

bool is_hot_file(std::string_view head);

// Reads the rings as they are now. Its process may be writing: the counters are read before and after the records, and
// what was taken from a ring meanwhile is left out (it is in the cold file, which is therefore read after this).
// Errors: kIo, and kBadInput when it is no hot file. At most what the file's own numbers say and holds.
Result<HotContent> read_hot(const std::string& path);

}  // namespace stageline::recording
