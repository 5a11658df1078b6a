// Recordings of a source: which files belong together, and what they hold in all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/progress.h"
#include "base/result.h"
#include "readers/reader.h"
#include "readers/recording/hot_file.h"
#include "readers/recording/rows.h"

namespace stageline::recording {

struct Meta {
  int32_t rank = -1, stage = -1, dp_rank = -1, world = 0, pp = 0, dp = 0;
  uint32_t tick_shift = 0;
  uint64_t ticks_per_second = 0, start_realtime_ns = 0;
  int64_t boot = 0;
  std::string uuid, host, job, hot;  // uuid: 16 bytes
  std::string devices;               // their uuids, with blanks between
  std::string kernels;               // "recorded", or why they no longer were; "": nobody asked for them
};
Meta parse_meta(std::string_view json);

// One process that recorded.
struct Recording {
  Meta meta;
  std::vector<std::string> paths;                         // cold files, in order
  std::string hot_path;                                   // "" where there is none, or nothing in it is needed
  Content content;                                        // of all files; rows and blocks without repetitions
  std::vector<Row> open;                                  // ranges that nobody has ended
  std::array<int64_t, kDropReasons> drops_in_files = {};  // without those that only the hot file counts
  int64_t lost_slots = 0;                                 // places of rings between the blocks that were found
  int64_t repeated_rows = 0;
  int64_t hot_rows = 0;  // of these, only in memory when it ended
};

// True when the file's first bytes are a recorder's.
bool is_cold(std::string_view head);

// Reads all .slrec and .slhot files of the source: hot files first, for their processes may be writing. Ordered by
// rank, then start. What could not be read is in `diagnostics`.
// `newest_bytes`: ReadOptions'.
std::vector<Recording> read_recordings(const Source& source, Progress* progress, Diagnostics& diagnostics,
                                       int64_t newest_bytes = 0);

}  // namespace stageline::recording
