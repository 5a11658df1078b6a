#include "readers/recording/rows.h"

#include "base/json_members.h"

namespace stageline::recording {
namespace {

// Reads varints until something does not fit; after that everything is 0, and good() is false.
class Numbers {
 public:
  explicit Numbers(std::string_view bytes) : bytes_(bytes) {}
  bool good() const { return good_; }
  bool at_end() const { return at_ >= bytes_.size(); }

  uint8_t byte() {
    if (at_ >= bytes_.size()) return fail();
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  uint64_t unsigned_number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t b = byte();
      value |= static_cast<uint64_t>(b & 0x7f) << shift;
      if ((b & 0x80) == 0) return good_ ? value : 0;
    }
    return fail();
  }
  int64_t signed_number() {
    const uint64_t value = unsigned_number();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  // Reads a number from −1 to `most`, which is written plus one.
  int32_t index(int64_t max) {
    const uint64_t value = unsigned_number();
    if (value > static_cast<uint64_t>(max) + 1) return fail();
    return static_cast<int32_t>(value - 1);
  }
  uint64_t below(uint64_t limit) {
    const uint64_t value = unsigned_number();
    return value < limit ? value : fail();
  }
  int64_t fixed64() {
    if (bytes_.size() - std::min(at_, bytes_.size()) < 8) return fail();
    const auto value = number_at<int64_t>(bytes_, at_);
    at_ += 8;
    return value;
  }

 private:
  uint8_t fail() {
    good_ = false;
    at_ = bytes_.size();
    return 0;
  }
  std::string_view bytes_;
  size_t at_ = 0;
  bool good_ = true;
};

// Sums of arbitrary deltas may overflow; they wrap as unsigned numbers do.
int64_t plus(int64_t a, int64_t b) { return a + static_cast<uint64_t>(b); }

bool take_ranges(const Chunk& chunk, Content& content) {
  if (chunk.flags > 32) return false;
  const auto shift = static_cast<uint8_t>(chunk.flags);
  Numbers in(chunk.payload);
  RowBlock block;
  block.ring = static_cast<uint32_t>(in.below(kMaxRings));
  block.first = in.unsigned_number();
  block.slots = in.unsigned_number();
  const uint64_t count = in.unsigned_number();
  block.begin = content.rows.size();
  uint16_t lane = 0;
  int64_t step = -1, host_end = chunk.first_ticks >> shift, device_end = 0;
  const auto ticks = [shift](int64_t value) { return static_cast<int64_t>(static_cast<uint64_t>(value) << shift); };
  uint64_t done = 0;
  for (; done < count && in.good() && !in.at_end(); ++done) {
    Row row;
    const uint8_t head = in.byte();
    row.type = static_cast<RecordType>(head & 7);
    if ((head & 7) > 4) return false;
    const uint8_t clock = (head & 0x80) != 0 ? in.byte() : 0;
    row.device_times = (clock & 1) != 0;
    row.host_instead = (clock & 2) != 0;
    if ((head & 8) != 0) lane = static_cast<uint16_t>(in.below(kMaxLanes));
    if ((head & 0x20) != 0) step = std::clamp<int64_t>(plus(step, in.signed_number()), -1, INT32_MAX);
    row.lane = lane;
    row.step = static_cast<int32_t>(step);
    row.name = static_cast<uint16_t>(in.below(kMaxNames));
    if (row.device_times) {
      row.start = plus(device_end, in.signed_number());
      row.end = device_end = plus(row.start, static_cast<int64_t>(in.unsigned_number()));
    } else {
      const int64_t start = plus(host_end, in.signed_number());
      host_end = start;
      row.start = row.end = ticks(start);
      if (row.type == RecordType::kRange) {
        host_end = plus(start, static_cast<int64_t>(in.unsigned_number()));
        row.end = ticks(host_end);
      } else if (row.type == RecordType::kCounter) {
        row.end = in.fixed64();
      } else if (row.type == RecordType::kStep) {
        row.end = in.signed_number();
      }
    }
    if ((head & 0x10) != 0) {
      row.kind = in.byte();
      row.micro_batch = in.index(INT32_MAX - 1);
      row.chunk = static_cast<int16_t>(in.index(INT16_MAX));
    }
    if ((head & 0x40) != 0) {
      const uint8_t known_fields = in.byte();
      if ((known_fields & 1) != 0) row.stage = static_cast<int16_t>(in.below(INT16_MAX));
      if ((known_fields & 2) != 0) row.peer = static_cast<int32_t>(in.below(INT32_MAX));
      if ((known_fields & 4) != 0) row.bytes = in.below(INT64_MAX);
      if ((known_fields & 8) != 0) row.sequence = in.below(INT64_MAX);
    }
    if (in.good()) content.rows.push_back(row);
  }
  block.end = content.rows.size();
  content.blocks.push_back(block);
  return in.good() && done == count && in.at_end();
}

bool take_raw(std::string_view payload, Content& content) {
  if (payload.size() < 16) return false;
  RowBlock block{.ring = number_at<uint32_t>(payload, 0)};
  if (block.ring >= kMaxRings) return false;
  block.first = number_at<uint64_t>(payload, 8);
  payload.remove_prefix(16);
  block.slots = payload.size() / kRecordBytes;
  block.begin = content.rows.size();
  while (payload.size() >= kRecordBytes) {
    const std::string_view record = payload.substr(0, kRecordBytes);
    payload.remove_prefix(kRecordBytes);
    std::string_view extra;
    if ((static_cast<uint8_t>(record[20]) & kHasExtra) != 0) {
      if (payload.size() < kRecordBytes) return false;
      extra = payload.substr(0, kRecordBytes);
      payload.remove_prefix(kRecordBytes);
    }
    content.rows.push_back(row_of(record, extra));
  }
  block.end = content.rows.size();
  content.blocks.push_back(block);
  return payload.empty();
}

bool take_open(std::string_view payload, Content& content) {
  for (; payload.size() >= kOpenRangeBytes; payload.remove_prefix(kOpenRangeBytes)) {
    const std::string_view record = payload.substr(0, kRecordBytes);
    Row row = row_of(
        record, (static_cast<uint8_t>(record[20]) & kHasExtra) != 0 ? payload.substr(kRecordBytes, kRecordBytes) : "");
    row.type = RecordType::kOpenRange;
    row.end = row.start;
    RowBlock block;
    block.ring = kMaxRings;  // of no ring, so that nothing repeats it
    block.begin = content.rows.size();
    content.rows.push_back(row);
    block.end = content.rows.size();
    content.blocks.push_back(block);
  }
  return payload.empty();
}

bool take_lanes(std::string_view payload, Content& content) {
  for (; payload.size() >= kLaneRowBytes; payload.remove_prefix(kLaneRowBytes)) {
    const auto id = number_at<uint32_t>(payload, 0);
    if (id == 0 || id >= kMaxLanes) return false;
    content.lanes[static_cast<uint16_t>(id)] = lane_of(payload.substr(8, kLaneEntryBytes));
  }
  return payload.empty();
}

bool take_clocks(std::string_view payload, Content& content) {
  for (; payload.size() >= kClockRowBytes; payload.remove_prefix(kClockRowBytes)) {
    const auto kind = static_cast<uint8_t>(payload[0]);
    if (kind == 0) {
      content.snapshots.push_back(snapshot_of(payload.substr(8, 40)));
    } else if (kind == 1) {
      DeviceAnchor anchor;
      anchor.clock = static_cast<uint8_t>(payload[1]);
      anchor.device_ns = number_at<int64_t>(payload, 8);
      anchor.before_ticks = number_at<int64_t>(payload, 16);
      anchor.after_ticks = number_at<int64_t>(payload, 24);
      content.anchors.push_back(anchor);
    } else {
      return false;
    }
  }
  return payload.empty();
}

bool take_gaps(std::string_view payload, Content& content) {
  for (; payload.size() >= kGapRowBytes; payload.remove_prefix(kGapRowBytes)) {
    const auto reason = number_at<uint32_t>(payload, 0);
    const auto count = number_at<uint64_t>(payload, 8);
    if (reason >= kDropReasons) return false;
    content.drops[reason] = std::min<uint64_t>(static_cast<uint64_t>(content.drops[reason]) + count, INT64_MAX / 2);
  }
  return payload.empty();
}

class Taker : public ChunkSink {
 public:
  explicit Taker(Content& content) : content_(content) {}
  void take(const Chunk& chunk) override {
    if (!take_chunk(chunk, content_)) ++content_.bad_chunks;
  }

 private:
  Content& content_;
};

// Takes only names, lanes and clocks.
class TableTaker : public Taker {
 public:
  using Taker::Taker;
  void take(const Chunk& chunk) override {
    if (chunk.type == ChunkType::kMeta || chunk.type == ChunkType::kStrings || chunk.type == ChunkType::kLanes ||
        chunk.type == ChunkType::kClock)
      Taker::take(chunk);
  }
};

}  // namespace

Row row_of(std::string_view record, std::string_view extra) {
  Row row;
  const auto flags = number_at<uint8_t>(record, 20);
  row.slots = (flags & kHasExtra) != 0 ? 2 : 1;
  row.start = number_at<int64_t>(record, 0);
  row.end = number_at<int64_t>(record, 8);
  row.name = number_at<uint16_t>(record, 16);
  row.lane = number_at<uint16_t>(record, 18);
  row.type = static_cast<RecordType>(std::min<uint8_t>(flags & kTypeMask, 4));
  row.kind = number_at<uint8_t>(record, 21);
  row.chunk = std::max<int16_t>(number_at<int16_t>(record, 22), -1);
  row.micro_batch = std::max(number_at<int32_t>(record, 24), -1);
  row.step = std::max(number_at<int32_t>(record, 28), -1);
  row.device_times = (flags & kDeviceTimes) != 0;
  row.host_instead = (flags & (kOnDevice | kNoDeviceTime)) != 0;
  if (extra.size() >= kRecordBytes) {
    row.bytes = number_at<int64_t>(extra, 0);
    row.sequence = number_at<int64_t>(extra, 8);
    row.peer = number_at<int32_t>(extra, 16);
    row.stage = number_at<int16_t>(extra, 20);
  }
  return row;
}

LaneRow lane_of(std::string_view entry) {
  LaneRow lane;
  lane.device_kind = number_at<uint8_t>(entry, 0);
  lane.clock = number_at<uint8_t>(entry, 1);
  lane.device = number_at<int16_t>(entry, 2);
  lane.thread = number_at<uint32_t>(entry, 4);
  lane.stream = number_at<uint64_t>(entry, 8);
  const std::string_view name = entry.substr(16, 48);
  lane.name = valid_utf8(std::string(name.substr(0, name.find('\0'))));
  return lane;
}

HostSnapshot snapshot_of(std::string_view bytes) {
  return {number_at<int64_t>(bytes, 0), number_at<int64_t>(bytes, 8), number_at<int64_t>(bytes, 16),
          number_at<int64_t>(bytes, 24), number_at<int64_t>(bytes, 32)};
}

bool take_names(std::string_view bytes, Content& content) {
  while (bytes.size() >= 4) {
    const auto id = number_at<uint16_t>(bytes, 0), length = number_at<uint16_t>(bytes, 2);
    if (bytes.size() < size_t{4} + length || id == 0) return false;
    content.names.try_emplace(id, valid_utf8(std::string(bytes.substr(4, length))));
    bytes.remove_prefix(size_t{4} + length);
  }
  return bytes.empty();
}

bool take_chunk(const Chunk& chunk, Content& content) {
  if (chunk.codec != 0) {
    ++content.unknown_chunks;
    return true;
  }
  switch (chunk.type) {
    case ChunkType::kMeta: content.meta = chunk.payload; return true;
    case ChunkType::kStrings: return take_names(chunk.payload, content);
    case ChunkType::kLanes: return take_lanes(chunk.payload, content);
    case ChunkType::kRanges: return take_ranges(chunk, content);
    case ChunkType::kClock: return take_clocks(chunk.payload, content);
    case ChunkType::kGap: return take_gaps(chunk.payload, content);
    case ChunkType::kEnd:
      content.ended = true;
      content.memory_lost |= json_member(chunk.payload, "memory_lost") == "1";
      return true;
    case ChunkType::kRaw: return take_raw(chunk.payload, content);
    case ChunkType::kOpen: return take_open(chunk.payload, content);
  }
  ++content.unknown_chunks;
  return true;
}

Result<Content> read_cold(const std::string& path, Progress* progress, int64_t newest_bytes) {
  Content content;
  Taker taker(content);
  if (newest_bytes > 0) {
    TableTaker tables(content);
    TRY(counts, for_newest_chunks(path, newest_bytes, content.head, tables, taker));
    if (*counts) {
      content.counts = **counts;
      content.begins_late = true;
      return content;
    }
    content = {};
  }
  TRY(counts, for_each_chunk(path, content.head, taker, progress));
  content.counts = *counts;
  return content;
}

}  // namespace stageline::recording
