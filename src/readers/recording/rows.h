// The contents of a recording, taken from its chunks and its hot file.
#pragma once

#include "base/progress.h"
#include "readers/common/ops.h"
#include "readers/recording/layout.h"

namespace stageline::recording {

// Goes through the chunks of a recording, whatever damage is between them.
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

inline constexpr int64_t kMaxSuspicion = 16;
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  virtual void take(const Chunk& chunk) = 0;
};
// Calls body(chunk) for every intact chunk in file order; views are valid during the call. After damage the next chunk
// is searched for byte by byte. The time is linear. Chunks with a good header and a bad payload cost at most
// kMaxSuspicion times the file in total; beyond that they are skipped as a whole. Errors: of opening and reading.
Result<ChunkCounts> for_each_chunk(const std::string& path, FileHead& head, ChunkSink& sink,
                                   Progress* progress = nullptr);

inline constexpr int64_t kTableBytes = int64_t{1} << 15;
// Does the same for a file that is still growing. `sink` receives the chunks that start within the last `newest_bytes`,
// `tables` those before them within the first kTableBytes. The chunks between are not read. nullopt when the file is
// not longer than `newest_bytes`, or is compressed. Bytes before the first chunk of the end belong to an earlier chunk
// and do not count as damage. Errors: of opening and reading.
Result<std::optional<ChunkCounts>> for_newest_chunks(const std::string& path, int64_t newest_bytes, FileHead& head,
                                                     ChunkSink& tables, ChunkSink& sink);

// Reports in `diagnostics` what was lost.
void report_damage(const ChunkCounts& counts, const std::string& path, Diagnostics& diagnostics);

// Reads a little-endian number from bytes that are long enough.
template <class T> T number_at(std::string_view bytes, size_t at) {
  T value;
  __builtin_memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

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

// Turns the data of recorded ranges beyond name and time into facts of profiler traces. These are messages and
// collectives (peer, bytes, number) and, if no job has a kind, the pipeline work in a name. Clocks, links and cells are
// then found by the same code as for profiles.
inline constexpr uint8_t kCommunicatorLane = 4;  // LaneRow::device_kind of a lane of NCCL's operations
inline constexpr uint8_t kKernelLane = 5;        // lane of a stream's kernels, recorded through CUPTI
inline constexpr uint8_t kLaunchLane = 6;  // lane of a thread's calls that launched device work, recorded through CUPTI

// Returns the entry whose index is `wanted`; entries are ordered by index.
template <class T> const T* find_index(const std::vector<T>& entries, uint32_t wanted) {
  const auto at = std::ranges::lower_bound(entries, wanted, {}, &T::index);
  return at != entries.end() && at->index == wanted ? &*at : nullptr;
}

class FactMaker {
 public:
  explicit FactMaker(Trace& trace) : trace_(trace) {}

  // Adds the lanes of a rank, before its ranges: they assign ranks to the members of a communicator.
  void add_lanes(const Content& content, int32_t rank);
  // Takes a range that became `op`; op.file_index must grow from call to call. `name` is as recorded, `domain` its
  // lane's.
  void add(const Op& op, const Row& row, const LaneRow* lane, std::string_view name, std::string_view domain);
  // Finds the slices again in the parts, which must have been built.
  void fill();

 private:
  struct Message {
    uint32_t index = 0;  // Op::file_index
    int32_t rank = 0, peer = -1, own = -1, size = 0;
    int64_t bytes = -1, sequence = -1;
    uint64_t communicator = 0;
    StringId name = 0;
    bool timed = true;  // its times are when it ran, and not when it was called
  };
  struct Range {
    uint32_t index = 0;
    RangeFact fact;
  };
  CollectiveFact fact_of(const Message& message);
  StringId members_of(uint64_t communicator, uint32_t size);

  Trace& trace_;
  std::vector<Message> messages_;
  std::vector<Range> ranges_;  // empty once some job has a kind
  bool has_cells_ = false;
  std::map<std::pair<uint64_t, int32_t>, int32_t> rank_of_;  // (communicator, number in it) → global rank
  std::map<uint64_t, StringId> members_;                     // by communicator
};

// Turns recorded kernels, copies and launches (stageline record --kernels) into the rows of a profiler's trace, so that
// every question about profiles can be asked of such a recording.
//
//   kernels' lanes   ──▶ device streams: kernel, gpu_memcpy, gpu_memset; class by name; bytes
//   launches' lanes  ──▶ cuda_runtime, cuda_driver on the lane of their thread, linked to their work by correlation
//   other ranges     ──▶ user_annotation; of a device gpu_user_annotation; of a communicator collective_comm
//   steps            ──▶ ProfilerStep#N on the lane of the thread that recorded them
//
// A recording without kernels is not changed: its slices do not have these facts.
class KernelMaker {
 public:
  explicit KernelMaker(Trace& trace) : trace_(trace) {}

  // Takes a recording's lanes, before its ranges. `places` maps a lane to its index in `names`, the lanes of the trace.
  void add_lanes(const Content& content, int32_t rank, const std::map<uint16_t, uint32_t>& places,
                 const std::vector<std::string>& names);
  // Takes a range that became `op`; op.file_index must grow from call to call.
  void add(const Op& op, const Row& row, const LaneRow* lane);
  // Takes the begin of a step; number, time and place are those of the op.
  void add_step(const Op& op) { steps_.push_back(op); }
  // Adds the steps as ranges, each up to the next of its rank; to be called before parts are built. O(ops).
  void append_steps(std::vector<Op>& ops);
  // Fills the columns of all parts, once parts and sparse facts exist. Restarts Slices::file_index in each part.
  void fill();

 private:
  struct Note {  // about a row that its lane alone does not explain
    uint32_t index = 0;
    uint32_t correlation = kNoCorrelation;
    int64_t bytes = -1;
    int32_t step = -1;
    uint8_t category = 0;
    bool communicates = false;
  };
  struct LaneFacts {
    LaneKind kind = LaneKind::kOther;
    uint8_t category = 0;
    std::string pid, tid;
    int64_t stream = -1;
  };
  void fill_part(Part& part) const;

  Trace& trace_;
  std::vector<Note> notes_;
  std::vector<Op> steps_;
  std::map<std::pair<int32_t, std::string>, LaneFacts> lanes_;  // key: rank and name
  bool any_ = false;
};

}  // namespace stageline::recording
