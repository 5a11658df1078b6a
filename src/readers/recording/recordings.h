// Gathers the recordings of a source: which files belong together, and what they contain.
#pragma once

#include "readers/reader.h"
#include "readers/recording/rows.h"

namespace stageline::recording {

// Reads the hot file of a recording: what its process had not yet written when it was killed, or has not written yet.
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

// Makes complete files from what is left of recordings that were damaged or whose processes were killed.
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
