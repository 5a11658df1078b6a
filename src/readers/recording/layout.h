// The byte layout of recordings, as in docs/formats/recording.md. record/src/layout.h has the same for the writer; a
// test compares the two.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "base/input_files.h"

namespace stageline::recording {

inline constexpr std::string_view kFileMagic{"SLREC01\n", 8}, kHotMagic{"SLHOT01\n", 8}, kChunkMagic{"SLCK", 4};
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr size_t kFileHeaderBytes = 64, kChunkHeaderBytes = 32, kMaxPayloadBytes = 1 << 16;

enum class ChunkType : uint8_t {
  kMeta = 1,
  kStrings = 2,
  kLanes = 3,
  kRanges = 4,
  kClock = 5,
  kGap = 6,
  kEnd = 7,
  kRaw = 8,
  kOpen = 9
};

enum class RecordType : uint8_t { kRange = 0, kInstant = 1, kCounter = 2, kStep = 3, kOpenRange = 4 };
inline constexpr uint8_t kTypeMask = 0x0f, kHasExtra = 0x10, kOnDevice = 0x20, kDeviceTimes = 0x40,
                         kNoDeviceTime = 0x80;
inline constexpr size_t kRecordBytes = 32, kLaneRowBytes = 72, kLaneEntryBytes = 64, kClockRowBytes = 48,
                        kGapRowBytes = 32;
inline constexpr uint32_t kMaxLanes = 4096, kMaxNames = 65535, kMaxOpen = 64, kMaxRings = 1024, kDropReasons = 16;

// The offsets of the fields of FileHeader are given in bytes.
inline constexpr size_t kFileVersionAt = 8, kFileCrcAt = 12, kFileClockAt = 16, kFileTickShiftAt = 17, kFilePartAt = 20,
                        kFileTicksAt = 24, kFileRealtimeAt = 32, kFilePidAt = 40, kFileRankAt = 44, kFileUuidAt = 48;
// Offsets in ChunkHeader.
inline constexpr size_t kChunkTypeAt = 4, kChunkCodecAt = 5, kChunkFlagsAt = 6, kChunkBytesAt = 8,
                        kChunkHeaderCrcAt = 12, kChunkPayloadCrcAt = 16, kChunkSequenceAt = 20, kChunkTicksAt = 24;
// Offsets in HotHeader.
inline constexpr size_t kHotVersionAt = 8, kHotRingRecordsAt = 16, kHotLanesAt = 24, kHotNamesAt = 32, kHotRingsAt = 40,
                        kHotRingBytesAt = 48, kHotPidAt = 56, kHotRankAt = 60, kHotTicksAt = 64, kHotRealtimeAt = 72,
                        kHotUuidAt = 80, kHotClockAt = 96, kHotFirstAt = 104, kHotSecondAt = 144, kHotRingCountAt = 184,
                        kHotLaneCountAt = 188, kHotNameBytesAt = 192, kHotMetaBytesAt = 196, kHotDropsAt = 200,
                        kHotMetaAt = 328, kHotMetaRoom = 3072, kHotHeaderBytes = 4096;
// Offsets in RingHeader.
inline constexpr size_t kRingHeadAt = 0, kRingDroppedAt = 8, kRingDepthAt = 16, kRingLaneAt = 20, kRingTailAt = 64,
                        kRingStackAt = 128, kOpenRangeBytes = 64,
                        kRingSlotsAt = kRingStackAt + kMaxOpen * kOpenRangeBytes, kOpenSlotBytes = 72,
                        kRingHeaderBytes = 12288;
inline constexpr uint64_t kSlotPhaseMask = 3, kSlotIsOpen = 1;

// From kFirstDeviceDrop on, a reason for a drop took only the device's time from a record; lower reasons took the whole
// record.
inline constexpr uint32_t kFirstDeviceDrop = 5, kDropNames = 12;

// Reads a file that its writer is still changing, by positions. The writer maps it, so it is never mapped here (a
// truncation would raise SIGBUS).
class Places {
 public:
  explicit Places(const std::string& path) : fd_(open_input_file(path)) {
    if (fd_ >= 0) note_content_read(path);
  }
  Places(const Places&) = delete;
  ~Places() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool is_open() const { return fd_ >= 0; }
  // Reads as much of [at, at + size) as there is, and returns how much that is.
  size_t read(uint64_t at, char* out, size_t size) const {
    size_t got = 0;
    if (at > INT64_MAX / 2) size = 0;
    while (got < size) {
      const ssize_t n = ::pread(fd_, out + got, size - got, at + got);
      if (n <= 0) break;
      got += n;
    }
    return got;
  }
  std::string read(uint64_t at, size_t size) const {
    std::string out(size, '\0');
    out.resize(read(at, out.data(), size));
    return out;
  }

 private:
  int fd_;
};

}  // namespace stageline::recording
