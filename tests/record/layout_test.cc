// The recorder and the reader describe the format each for themselves; here they are held together.
#include "layout.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "base/crc32c.h"
#include "crc32c.h"
#include "readers/recording/layout.h"
#include "stageline_record.h"

namespace reader = stageline::recording;

static_assert(reader::kFileHeaderBytes == sizeof(slr::FileHeader));
static_assert(reader::kFileVersionAt == offsetof(slr::FileHeader, version));
static_assert(reader::kFileCrcAt == offsetof(slr::FileHeader, crc));
static_assert(reader::kFileClockAt == offsetof(slr::FileHeader, clock));
static_assert(reader::kFileTickShiftAt == offsetof(slr::FileHeader, tick_shift));
static_assert(reader::kFilePartAt == offsetof(slr::FileHeader, part));
static_assert(reader::kFileTicksAt == offsetof(slr::FileHeader, ticks_per_second));
static_assert(reader::kFileRealtimeAt == offsetof(slr::FileHeader, start_realtime_ns));
static_assert(reader::kFilePidAt == offsetof(slr::FileHeader, pid));
static_assert(reader::kFileRankAt == offsetof(slr::FileHeader, rank));
static_assert(reader::kFileUuidAt == offsetof(slr::FileHeader, uuid));
static_assert(reader::kChunkHeaderBytes == sizeof(slr::ChunkHeader));
static_assert(reader::kChunkTypeAt == offsetof(slr::ChunkHeader, type));
static_assert(reader::kChunkCodecAt == offsetof(slr::ChunkHeader, codec));
static_assert(reader::kChunkFlagsAt == offsetof(slr::ChunkHeader, flags));
static_assert(reader::kChunkBytesAt == offsetof(slr::ChunkHeader, payload_bytes));
static_assert(reader::kChunkHeaderCrcAt == offsetof(slr::ChunkHeader, header_crc));
static_assert(reader::kChunkPayloadCrcAt == offsetof(slr::ChunkHeader, payload_crc));
static_assert(reader::kChunkSequenceAt == offsetof(slr::ChunkHeader, sequence));
static_assert(reader::kChunkTicksAt == offsetof(slr::ChunkHeader, first_ticks));
static_assert(reader::kMaxPayloadBytes == slr::kMaxPayloadBytes);
static_assert(reader::kRecordBytes == sizeof(slr::Record) && reader::kRecordBytes == sizeof(slr::Extra));
static_assert(reader::kLaneEntryBytes == sizeof(slr::LaneEntry));
static_assert(offsetof(slr::LaneEntry, name) == 16 && offsetof(slr::LaneEntry, clock) == 1 &&
              offsetof(slr::LaneEntry, device) == 2);
static_assert(offsetof(slr::Record, name) == 16 && offsetof(slr::Record, lane) == 18 &&
              offsetof(slr::Record, type) == 20 && offsetof(slr::Record, kind) == 21 &&
              offsetof(slr::Record, chunk) == 22 && offsetof(slr::Record, micro_batch) == 24 &&
              offsetof(slr::Record, step) == 28);
static_assert(offsetof(slr::Extra, sequence) == 8 && offsetof(slr::Extra, peer) == 16 &&
              offsetof(slr::Extra, stage) == 20);
static_assert(sizeof(slr::Snapshot) == 40 && offsetof(slr::Snapshot, realtime_ns) == 24);
static_assert(reader::kMaxLanes == slr::kMaxLanes && reader::kMaxNames == slr::kMaxNames &&
              reader::kMaxOpen == slr::kMaxOpen && reader::kDropReasons == slr::kDropReasons);
static_assert(reader::kTypeMask == slr::kTypeMask && reader::kHasExtra == slr::kHasExtra &&
              reader::kOnDevice == slr::kOnDevice && reader::kDeviceTimes == slr::kDeviceTimes &&
              reader::kNoDeviceTime == slr::kNoDeviceTime);
static_assert(static_cast<int>(reader::ChunkType::kMeta) == slr::kMeta &&
              static_cast<int>(reader::ChunkType::kStrings) == slr::kStrings &&
              static_cast<int>(reader::ChunkType::kLanes) == slr::kLanes &&
              static_cast<int>(reader::ChunkType::kRanges) == slr::kRanges &&
              static_cast<int>(reader::ChunkType::kClock) == slr::kClock &&
              static_cast<int>(reader::ChunkType::kGap) == slr::kGap &&
              static_cast<int>(reader::ChunkType::kEnd) == slr::kEnd &&
              static_cast<int>(reader::ChunkType::kRaw) == slr::kRaw &&
              static_cast<int>(reader::ChunkType::kOpen) == slr::kOpen);
static_assert(static_cast<int>(reader::RecordType::kOpenRange) == slr::kOpenRange &&
              static_cast<int>(reader::RecordType::kStep) == slr::kStep);
static_assert(reader::kFirstDeviceDrop == SLR_DROP_CAPTURE && reader::kDropNames == SLR_DROP_NAMES);

static_assert(reader::kHotVersionAt == offsetof(slr::HotHeader, version));
static_assert(reader::kHotRingRecordsAt == offsetof(slr::HotHeader, ring_records));
static_assert(reader::kHotLanesAt == offsetof(slr::HotHeader, lanes_at));
static_assert(reader::kHotNamesAt == offsetof(slr::HotHeader, names_at));
static_assert(reader::kHotRingsAt == offsetof(slr::HotHeader, rings_at));
static_assert(reader::kHotRingBytesAt == offsetof(slr::HotHeader, ring_bytes));
static_assert(reader::kHotPidAt == offsetof(slr::HotHeader, pid));
static_assert(reader::kHotRankAt == offsetof(slr::HotHeader, rank));
static_assert(reader::kHotTicksAt == offsetof(slr::HotHeader, ticks_per_second));
static_assert(reader::kHotRealtimeAt == offsetof(slr::HotHeader, start_realtime_ns));
static_assert(reader::kHotUuidAt == offsetof(slr::HotHeader, uuid));
static_assert(reader::kHotClockAt == offsetof(slr::HotHeader, clock));
static_assert(reader::kHotFirstAt == offsetof(slr::HotHeader, first));
static_assert(reader::kHotSecondAt == offsetof(slr::HotHeader, second));
static_assert(reader::kHotRingCountAt == offsetof(slr::HotHeader, ring_count));
static_assert(reader::kHotLaneCountAt == offsetof(slr::HotHeader, lane_count));
static_assert(reader::kHotNameBytesAt == offsetof(slr::HotHeader, name_bytes));
static_assert(reader::kHotMetaBytesAt == offsetof(slr::HotHeader, meta_bytes));
static_assert(reader::kHotDropsAt == offsetof(slr::HotHeader, drops));
static_assert(reader::kHotMetaAt == offsetof(slr::HotHeader, meta) &&
              reader::kHotMetaRoom == sizeof(slr::HotHeader::meta));
static_assert(reader::kRingHeadAt == offsetof(slr::RingHeader, head));
static_assert(reader::kRingDroppedAt == offsetof(slr::RingHeader, dropped));
static_assert(reader::kRingDepthAt == offsetof(slr::RingHeader, depth));
static_assert(reader::kRingLaneAt == offsetof(slr::RingHeader, lane));
static_assert(reader::kRingTailAt == offsetof(slr::RingHeader, tail));
static_assert(reader::kRingStackAt == offsetof(slr::RingHeader, stack));
static_assert(reader::kRingSlotsAt == offsetof(slr::RingHeader, slots));
static_assert(reader::kOpenRangeBytes == sizeof(slr::OpenRange) && reader::kOpenSlotBytes == sizeof(slr::OpenSlot));
static_assert(reader::kRingHeaderBytes == slr::kRingHeaderBytes);

TEST_CASE("both sides know the same magic words and sum alike") {
  CHECK(std::string(slr::kFileMagic, 8) == reader::kFileMagic);
  CHECK(std::string(slr::kHotMagic, 8) == reader::kHotMagic);
  CHECK(std::string(slr::kChunkMagic, 4) == reader::kChunkMagic);
  CHECK(slr::crc32c("123456789", 9) == 0xE3069283u);  // RFC 3720's check value
  CHECK(stageline::crc32c("123456789") == 0xE3069283u);
  std::mt19937 random(1);
  for (size_t size = 0; size < 200; ++size) {
    std::string bytes(size, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const size_t cut = size / 3;
    CHECK(slr::crc32c(bytes.data(), size) == stageline::crc32c(bytes));
    CHECK(slr::crc32c(bytes.data() + cut, size - cut, slr::crc32c(bytes.data(), cut)) == stageline::crc32c(bytes));
  }
}
