// Walks the chunks of a recording, whatever happened to the file in between.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostics.h"
#include "base/progress.h"
#include "base/result.h"
#include "readers/recording/layout.h"

namespace stageline::recording {

struct FileHead {
  bool good = false;  // magic and CRC are right
  uint32_t version = 0, part = 0, pid = 0;
  uint8_t tick_shift = 0;
  int32_t rank = -1;
  uint64_t ticks_per_second = 0, start_realtime_ns = 0;
  std::string uuid;  // 16 bytes
};

struct Chunk {
  ChunkType type = ChunkType::kMeta;
  uint8_t codec = 0;
  uint16_t flags = 0;  // RANGES: the low bits that its ticks have lost
  uint32_t sequence = 0;
  uint64_t first_ticks = 0;
  int64_t offset = 0;        // of its header in the (decompressed) file
  std::string_view payload;  // checked
  std::string_view whole;    // header, payload and padding as they lie in the file
};

struct ChunkCounts {
  int64_t chunks = 0, damaged = 0, skipped_bytes = 0, first_damage = -1, first_chunk = -1;  // the last two: places
  bool torn = false;  // the file ends within a chunk: it was being written, or its writer was killed
  int64_t bytes = 0;
};

FileHead parse_head(std::string_view bytes);

// Calls body(chunk) for every intact chunk, in file order; the views live for the call. What is not a chunk is
// searched for the next one, byte by byte. Linear: chunks whose header is right and whose payload is not cost no more
// than kMaxSuspicion times the file in all, and beyond that they are stepped over whole. Errors: of opening and
// reading.
inline constexpr int64_t kMaxSuspicion = 16;
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  virtual void take(const Chunk& chunk) = 0;
};
Result<ChunkCounts> for_each_chunk(const std::string& path, FileHead& head, ChunkSink& sink,
                                   Progress* progress = nullptr);

// The same of a file that grows: `tables` gets the chunks of its first kTableBytes, `sink` those that begin within its
// last `newest_bytes`; what lies between is not read. nullopt: the file is not longer than both, or not plain bytes.
// What precedes the first chunk of the end is the rest of one, and no damage. Errors: of opening and reading.
inline constexpr int64_t kTableBytes = int64_t{1} << 15;
Result<std::optional<ChunkCounts>> for_newest_chunks(const std::string& path, int64_t newest_bytes, FileHead& head,
                                                     ChunkSink& tables, ChunkSink& sink);

// Says in `diagnostics` what was lost.
void report_damage(const ChunkCounts& counts, const std::string& path, Diagnostics& diagnostics);

// Little-endian numbers of a text that is long enough.
template <class T>
T number_at(std::string_view bytes, size_t at) {
  T value;
  __builtin_memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace stageline::recording
