// The contents of a recording, taken from its chunks and its hot file.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "readers/recording/chunks.h"

namespace stageline::recording {

struct Row {
  int64_t start = 0, end = 0;  // ticks of the host, or nanoseconds of the lane's device clock
  int64_t bytes = -1, sequence = -1;
  int32_t micro_batch = -1, step = -1, peer = -1;
  uint16_t name = 0, lane = 0;
  int16_t chunk = -1, stage = -1;
  RecordType type = RecordType::kRange;
  uint8_t kind = 0;
  uint8_t slots = 0;          // slots in the ring, where known: 1, or 2 with extra facts
  bool device_times = false;  // start and end are the device's
  bool host_instead = false;  // the row is on a device's lane, but only the host's times are known
};

// Neighbouring records of one ring: slots [first, first + slots) of the ring, rows [begin, end).
struct RowBlock {
  uint32_t ring = 0;
  uint64_t first = 0, slots = 0;
  size_t begin = 0, end = 0;
};

struct LaneRow {
  std::string name;
  uint8_t device_kind = 0, clock = 0;
  int16_t device = -1;  // for a communicator: the rank's number in it
  uint32_t thread = 0;  // for a communicator: how many ranks it has
  uint64_t stream = 0;  // for a communicator: its number, which is the same on all its ranks
};

struct HostSnapshot {
  int64_t ticks = 0, raw_ns = 0, monotonic_ns = 0, realtime_ns = 0, bracket_ticks = 0;
};
struct DeviceAnchor {
  uint8_t clock = 0;
  int64_t device_ns = 0, before_ticks = 0, after_ticks = 0;
};

struct Content {
  FileHead head;
  std::string meta;          // the last META that was complete; "" when there is none
  bool ended = false;        // an END chunk was found, so the recording was closed
  bool begins_late = false;  // what lies before its newest records was not read
  bool memory_lost = false;  // recovered without its hot file, so what was only in memory is missing
  std::map<uint16_t, std::string> names;
  std::map<uint16_t, LaneRow> lanes;
  std::vector<Row> rows;
  std::vector<RowBlock> blocks;
  std::vector<HostSnapshot> snapshots;
  std::vector<DeviceAnchor> anchors;
  std::array<int64_t, kDropReasons> drops = {};
  ChunkCounts counts;
  int64_t bad_chunks = 0;  // their CRC is right, but they are not as the format says
  int64_t unknown_chunks = 0;
};

// Takes one chunk apart. Returns false when it is not as the format says; what came before that in the chunk is kept.
bool take_chunk(const Chunk& chunk, Content& content);

// Reads all of one .slrec file, or, if it is longer, its tables and the last `newest_bytes` (0 reads everything).
// Errors: of opening and reading.
Result<Content> read_cold(const std::string& path, Progress* progress, int64_t newest_bytes = 0);

// Parses a lane entry of 64 bytes.
LaneRow lane_of(std::string_view entry);
HostSnapshot snapshot_of(std::string_view bytes);
// Parses names as they lie in memory: id, length, bytes. Returns false at the first that is cut.
bool take_names(std::string_view bytes, Content& content);
// Parses one record of 32 bytes, and its 32 bytes of extra facts ("" for none).
Row row_of(std::string_view record, std::string_view extra);

}  // namespace stageline::recording
