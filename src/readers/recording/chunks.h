// Goes through the chunks of a recording, whatever damage is between them.
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
  bool good = false;  // magic number and CRC are right
  uint32_t version = 0, part = 0, pid = 0;
  uint8_t tick_shift = 0;
  int32_t rank = -1;
  uint64_t ticks_per_second = 0, start_realtime_ns = 0;
  std::string uuid;  // 16 bytes
};

struct Chunk {
  ChunkType type = ChunkType::kMeta;
  uint8_t codec = 0;
  uint16_t flags = 0;  // for RANGES: how many low bits its ticks have lost
  uint32_t sequence = 0;
  uint64_t first_ticks = 0;
  int64_t offset = 0;        // position of its header in the (decompressed) file
  std::string_view payload;  // verified by its CRC
  std::string_view whole;    // header, payload and padding as in the file
};

struct ChunkCounts {
  // The last two are positions.
  int64_t chunks = 0, damaged = 0, skipped_bytes = 0, first_damage = -1, first_chunk = -1;
  bool torn = false;  // the file ends within a chunk: it was being written, or its writer was killed
  int64_t bytes = 0;
};

FileHead parse_head(std::string_view bytes);

// Calls body(chunk) for every intact chunk in file order; views are valid during the call. After damage the next chunk
// is searched for byte by byte. The time is linear. Chunks with a good header and a bad payload cost at most
// kMaxSuspicion times the file in total; beyond that they are skipped as a whole. Errors: of opening and reading.
inline constexpr int64_t kMaxSuspicion = 16;
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  virtual void take(const Chunk& chunk) = 0;
};
Result<ChunkCounts> for_each_chunk(const std::string& path, FileHead& head, ChunkSink& sink,
                                   Progress* progress = nullptr);

// The same for a file that is still growing. `sink` receives the chunks that start within the last `newest_bytes`,
// `tables` those before them within the first kTableBytes. The chunks between are not read. nullopt when the file is
// not longer than `newest_bytes`, or is compressed. Bytes before the first chunk of the end belong to an earlier chunk
// and do not count as damage. Errors: of opening and reading.
inline constexpr int64_t kTableBytes = int64_t{1} << 15;
Result<std::optional<ChunkCounts>> for_newest_chunks(const std::string& path, int64_t newest_bytes, FileHead& head,
                                                     ChunkSink& tables, ChunkSink& sink);

// Reports in `diagnostics` what was lost.
void report_damage(const ChunkCounts& counts, const std::string& path, Diagnostics& diagnostics);

// Reads a little-endian number from bytes that are long enough.
template <class T>
T number_at(std::string_view bytes, size_t at) {
  T value;
  __builtin_memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace stageline::recording
