// Gathers the recordings of a source: which files belong together, and what they contain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/progress.h"
#include "readers/reader.h"
#include "readers/recording/hot_file.h"
#include "readers/recording/rows.h"

namespace stageline::recording {

struct Meta {
  int32_t rank = -1, stage = -1, dp_rank = -1, world = 0, pp = 0, dp = 0;
  uint32_t tick_shift = 0;
  uint64_t ticks_per_second = 0, start_realtime_ns = 0;
  int64_t boot = 0;
  std::string uuid, host, job, hot;  // uuid has 16 bytes
  std::string devices;               // the devices' uuids, with blanks between
  std::string kernels;               // "recorded", or why they stopped being recorded; "" if they were not requested
};
Meta parse_meta(std::string_view json);

// Holds the recording of one process.
struct Recording {
  Meta meta;
  std::vector<std::string> paths;                         // cold files, in order
  std::string hot_path;                                   // "" where there is none, or nothing in it is needed
  Content content;                                        // from all files, with rows and blocks without repetitions
  std::vector<Row> open;                                  // ranges that have not ended
  std::array<int64_t, kDropReasons> drops_in_files = {};  // without those that only the hot file counts
  int64_t lost_slots = 0;                                 // places of rings between the blocks that were found
  int64_t repeated_rows = 0;
  int64_t hot_rows = 0;  // rows that were only in memory when it ended
};

// Returns true when a file's first bytes are those of a recorder's file.
bool is_cold(std::string_view head);

// Reads all .slrec and .slhot files of the source, hot files first, since their processes may be writing. Returns
// recordings ordered by rank, then start; what could not be read is reported in `diagnostics`. `newest_bytes` is as in
// ReadOptions.
std::vector<Recording> read_recordings(const Source& source, Progress* progress, Diagnostics& diagnostics,
                                       int64_t newest_bytes = 0);

}  // namespace stageline::recording
