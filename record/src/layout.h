// The bytes of recordings: the cold file (.slrec, chunks) and the hot file (.slhot, mapped memory). Little endian.
// docs/formats/recording.md describes them byte by byte; src/readers/recording/layout.h has them once more for the
// reader, which includes nothing from here (tests/record/layout_test.cc holds the two together).
//
//   cold: FileHeader · chunk · chunk · …       chunk = ChunkHeader, payload, zeros to a multiple of 8
//   hot:  HotHeader · lanes · names · ring · ring · …
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace slr {

inline constexpr char kFileMagic[8] = {'S', 'L', 'R', 'E', 'C', '0', '1', '\n'};
inline constexpr char kChunkMagic[4] = {'S', 'L', 'C', 'K'};
inline constexpr char kHotMagic[8] = {'S', 'L', 'H', 'O', 'T', '0', '1', '\n'};
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr uint32_t kMaxPayloadBytes = 1 << 16;  // of one chunk
inline constexpr uint32_t kMetaEveryChunks = 64;       // META, STRINGS and LANES are rewritten that often

enum ClockKind : uint8_t { kClockMonotonicRaw = 0, kClockTsc = 1, kClockCntvct = 2 };

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t crc;  // CRC32C of the 64 bytes with this field 0
  uint8_t clock;
  uint8_t tick_shift;  // times in RANGES are ticks >> tick_shift
  uint16_t reserved;
  uint32_t part;  // number of the file within the recording, from 0
  uint64_t ticks_per_second;
  uint64_t start_realtime_ns;
  uint32_t pid;
  int32_t rank;  // −1: unknown
  uint8_t uuid[16];
};
static_assert(sizeof(FileHeader) == 64);

enum ChunkType : uint8_t {
  kMeta = 1,     // JSON object
  kStrings = 2,  // names: id, length, bytes
  kLanes = 3,
  kRanges = 4,  // records of one ring, packed
  kClock = 5,   // snapshots of the host's clocks, anchors of devices
  kGap = 6,     // what was dropped
  kEnd = 7,     // JSON object: totals
  kRaw = 8,     // records of one ring, as they lay in memory
  kOpen = 9,    // ranges that were open when the recording was saved by `stageline recover`
};

struct ChunkHeader {
  char magic[4];
  uint8_t type;
  uint8_t codec;   // 0
  uint16_t flags;  // RANGES: the low bits that its ticks have lost
  uint32_t payload_bytes;
  uint32_t header_crc;   // CRC32C of these 32 bytes with both CRCs 0
  uint32_t payload_crc;  // CRC32C of the payload
  uint32_t sequence;     // counts the chunks of a recording, over all its files
  uint64_t first_ticks;
};
static_assert(sizeof(ChunkHeader) == 32);

enum RecordType : uint8_t { kRange = 0, kInstant = 1, kCounter = 2, kStep = 3, kOpenRange = 4 };
inline constexpr uint8_t kTypeMask = 0x0f;
inline constexpr uint8_t kHasExtra = 0x10;      // the next slot of the ring is this record's Extra
inline constexpr uint8_t kOnDevice = 0x20;      // begin and end have events; times are the host's until they are known
inline constexpr uint8_t kDeviceTimes = 0x40;   // times are the lane's device clock, in ns
inline constexpr uint8_t kNoDeviceTime = 0x80;  // of a device lane, but the host's times are all there is

struct Record {
  uint64_t start_ticks;
  uint64_t end_ticks;  // counter: the double's bits; step: the step's number
  uint16_t name;
  uint16_t lane;
  uint8_t type;  // RecordType and flags
  uint8_t kind;
  int16_t chunk;  // −1: none
  int32_t micro_batch;
  int32_t step;
};
struct Extra {
  int64_t bytes;
  int64_t sequence;
  int32_t peer;
  int16_t stage;
  uint16_t tag;                     // in memory only: the domain of an injected push, 0 for others
  uint32_t start_event, end_event;  // in memory only: places in the table of events, kNoEvent
};
static_assert(sizeof(Record) == 32 && sizeof(Extra) == 32);
inline constexpr uint32_t kNoEvent = UINT32_MAX;

inline constexpr uint32_t kMaxLanes = 4096;
inline constexpr uint32_t kMaxNames = 65535;  // ids 1 … 65534
inline constexpr uint32_t kNameBytes = 1 << 20;
inline constexpr uint32_t kMaxOpen = 64;
inline constexpr uint32_t kDropReasons = 16;

// A lane of NCCL's operations: `device` is the rank's number in the communicator, `thread_id` its ranks, `stream_id`
// its number, the same on all of them.
inline constexpr uint8_t kCommunicator = 4;
// A lane of a stream's kernels, as CUPTI numbers it: `thread_id` is the context. Host's times, whoever took them.
// A record's sequence is CUPTI's correlation, its bytes are a copy's or fill's; kernels have none.
inline constexpr uint8_t kKernels = 5;
// A lane of the calls of a thread, `thread_id`, that gave the device work; sequence as above.
inline constexpr uint8_t kLaunches = 6;

struct LaneEntry {
  uint8_t device_kind;  // enum slr_device, kCommunicator, kKernels, kLaunches
  uint8_t clock;        // 0: host, else the number of a device clock
  int16_t device;       // −1: unknown
  uint32_t thread_id;
  uint64_t stream_id;
  char name[48];  // zero-terminated
};
static_assert(sizeof(LaneEntry) == 64);

// Host clocks read together: ticks lie within ± bracket / 2.
struct Snapshot {
  uint64_t ticks;
  int64_t monotonic_raw_ns, monotonic_ns, realtime_ns;
  uint64_t bracket_ticks;
};
static_assert(sizeof(Snapshot) == 40);

struct HotHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint32_t ring_records;  // a power of two
  uint32_t ring_limit;    // rings there may be
  uint64_t lanes_at, names_at, rings_at, ring_bytes;
  uint32_t pid;
  int32_t rank;
  uint64_t ticks_per_second;
  uint64_t start_realtime_ns;
  uint8_t uuid[16];
  uint8_t clock;
  uint8_t padding[7];
  Snapshot first, second;  // start, and ~2 ms later: enough to convert by, when nothing else was written
  std::atomic<uint32_t> ring_count;
  std::atomic<uint32_t> lane_count;  // lanes 1 … lane_count − 1 are there
  std::atomic<uint32_t> name_bytes;  // of names_at: u16 id, u16 length, bytes, and so on
  std::atomic<uint32_t> meta_bytes;
  std::atomic<uint64_t> drops[kDropReasons];
  char meta[3072];  // the META object
};
static_assert(sizeof(HotHeader) <= 4096);

struct OpenRange {
  Record record;
  Extra extra;
};
struct OpenSlot {
  std::atomic<uint64_t> state;  // generation · 2 + (1 while open)
  OpenRange range;
};

struct RingHeader {
  alignas(64) std::atomic<uint64_t> head;  // places ever taken; the owner's
  std::atomic<uint64_t> dropped;           // the owner's
  std::atomic<uint32_t> depth;             // pushes open
  uint16_t lane;
  uint16_t reserved;
  std::atomic<uint64_t> doubles;           // of the records, those that took two places; the owner's
  alignas(64) std::atomic<uint64_t> tail;  // of these, in the cold file; the writer's
  alignas(64) OpenRange stack[kMaxOpen];
  OpenSlot slots[kMaxOpen];
};
inline constexpr uint64_t kRingHeaderBytes = 12288;
static_assert(sizeof(RingHeader) <= kRingHeaderBytes);

}  // namespace slr
