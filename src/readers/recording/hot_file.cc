#include "readers/recording/recordings.h"

namespace stageline::recording {
namespace {

constexpr uint32_t kMaxRingRecords = 1 << 20;

class HotReader {
 public:
  HotReader(const Places& file, std::string head) : file_(file), head_(std::move(head)) {}

  HotContent read() {
    Content& content = out_.content;
    content.head.good = true;
    content.head.version = number_at<uint32_t>(head_, kHotVersionAt);
    content.head.pid = out_.pid = number_at<uint32_t>(head_, kHotPidAt);
    content.head.rank = number_at<int32_t>(head_, kHotRankAt);
    content.head.ticks_per_second = number_at<uint64_t>(head_, kHotTicksAt);
    content.head.start_realtime_ns = number_at<uint64_t>(head_, kHotRealtimeAt);
    content.head.uuid = head_.substr(kHotUuidAt, 16);
    const std::string_view head(head_);
    content.snapshots = {snapshot_of(head.substr(kHotFirstAt, 40)), snapshot_of(head.substr(kHotSecondAt, 40))};
    for (uint32_t i = 0; i < kDropReasons; ++i)
      content.drops[i] = std::max<int64_t>(0, number_at<int64_t>(head_, kHotDropsAt + 8 * size_t{i}));
    const size_t meta_bytes = std::min<size_t>(number_at<uint32_t>(head_, kHotMetaBytesAt), kHotMetaRoom);
    content.meta = head_.substr(kHotMetaAt, meta_bytes);

    const uint32_t lane_count = std::min(number_at<uint32_t>(head_, kHotLaneCountAt), kMaxLanes);
    const std::string lanes = file_.read(number_at<uint64_t>(head_, kHotLanesAt), lane_count * kLaneEntryBytes);
    for (size_t id = 1; (id + 1) * kLaneEntryBytes <= lanes.size(); ++id)
      content.lanes[static_cast<uint16_t>(id)] =
          lane_of(std::string_view(lanes).substr(id * kLaneEntryBytes, kLaneEntryBytes));
    constexpr uint32_t kMaxNameBytes = 1 << 20;
    const std::string names = file_.read(number_at<uint64_t>(head_, kHotNamesAt),
                                         std::min(number_at<uint32_t>(head_, kHotNameBytesAt), kMaxNameBytes));
    if (!take_names(names, content)) ++content.bad_chunks;
    read_rings();
    return std::move(out_);
  }

 private:
  void read_rings() {
    const uint32_t records = number_at<uint32_t>(head_, kHotRingRecordsAt);
    const uint64_t ring_bytes = number_at<uint64_t>(head_, kHotRingBytesAt),
                   rings_at = number_at<uint64_t>(head_, kHotRingsAt);
    if (records == 0 || (records & (records - 1)) != 0 || records > kMaxRingRecords ||
        ring_bytes < kRingHeaderBytes + uint64_t{records} * kRecordBytes || ring_bytes > INT32_MAX ||
        rings_at > INT32_MAX) {
      ++out_.content.bad_chunks;
      return;
    }
    const uint32_t count = std::min(number_at<uint32_t>(head_, kHotRingCountAt), kMaxRings);
    for (uint32_t i = 0; i < count; ++i) read_ring(i, rings_at + i * ring_bytes, records);
  }

  void read_ring(uint32_t index, uint64_t at, uint32_t records) {
    const std::string before = file_.read(at, kRingHeaderBytes);
    if (before.size() < kRingHeaderBytes) return;
    out_.content.drops[0] += std::max<int64_t>(0, number_at<int64_t>(before, kRingDroppedAt));
    const auto head = number_at<uint64_t>(before, kRingHeadAt), old_tail = number_at<uint64_t>(before, kRingTailAt);
    const uint64_t waiting = head - old_tail;
    std::string data;  // the records [old_tail, head) of the ring, one after another
    if (old_tail <= head && waiting <= records && waiting > 0) {
      const uint64_t first = old_tail & (records - 1), straight = std::min<uint64_t>(waiting, records - first);
      data = file_.read(at + kRingHeaderBytes + first * kRecordBytes, straight * kRecordBytes);
      if (data.size() == straight * kRecordBytes)
        data += file_.read(at + kRingHeaderBytes, (waiting - straight) * kRecordBytes);
    }
    const std::string after = file_.read(at, kRingTailAt + 8);
    if (after.size() < kRingTailAt + 8) return;
    const auto tail = number_at<uint64_t>(after, kRingTailAt);
    if (tail > head) return read_open(before);  // the ring was written meanwhile
    if (tail < old_tail || waiting > records || data.size() < waiting * kRecordBytes) {
      if (head != tail) ++out_.content.bad_chunks;
      return read_open(before);
    }
    RowBlock block{.ring = index, .first = tail, .slots = head - tail, .begin = out_.content.rows.size()};
    out_.raw_begin.push_back(out_.raw.size());
    for (uint64_t position = tail; position < head; ++position) {
      const std::string_view record = std::string_view(data).substr((position - old_tail) * kRecordBytes, kRecordBytes);
      std::string_view extra;
      out_.raw += record;
      if ((static_cast<uint8_t>(record[20]) & kHasExtra) != 0 && position + 1 < head) {
        ++position;
        extra = std::string_view(data).substr((position - old_tail) * kRecordBytes, kRecordBytes);
        out_.raw += extra;
      }
      out_.content.rows.push_back(row_of(record, extra));
    }
    block.end = out_.content.rows.size();
    out_.content.blocks.push_back(block);
    read_open(before);
  }

  void add_open(std::string_view bytes) {
    Row row = row_of(bytes.substr(0, kRecordBytes), bytes.substr(kRecordBytes, kRecordBytes));
    if (row.start == 0) return;  // pushed outside the window
    row.type = RecordType::kOpenRange;
    row.end = row.start;
    out_.open.push_back(row);
    out_.open_bytes.emplace_back(bytes.substr(0, kOpenRangeBytes));
  }

  void read_open(const std::string& header) {
    const std::string_view bytes(header);
    const uint32_t depth = std::min(number_at<uint32_t>(bytes, kRingDepthAt), kMaxOpen);
    for (uint32_t d = 0; d < depth; ++d) add_open(bytes.substr(kRingStackAt + d * kOpenRangeBytes, kOpenRangeBytes));
    for (uint32_t s = 0; s < kMaxOpen; ++s) {
      const std::string_view slot = bytes.substr(kRingSlotsAt + s * kOpenSlotBytes, kOpenSlotBytes);
      if ((number_at<uint64_t>(slot, 0) & kSlotPhaseMask) == kSlotIsOpen) add_open(slot.substr(8));
    }
  }

  const Places& file_;
  std::string head_;
  HotContent out_;
};

}  // namespace

bool is_hot_file(std::string_view head) { return head.starts_with(kHotMagic); }

Result<HotContent> read_hot(const std::string& path) {
  const Places file(path);
  if (!file.is_open()) return make_error(ErrorCode::kIo, "cannot be opened", "", {path});
  std::string head = file.read(0, kHotHeaderBytes);
  if (head.size() < kHotHeaderBytes || !is_hot_file(head))
    return make_error(ErrorCode::kBadInput, "not a recorder's hot file",
                      "it begins with SLHOT01; give the folder that was recorded to", {path});
  return HotReader(file, std::move(head)).read();
}

}  // namespace stageline::recording
