#include <filesystem>

#include "base/crc32c.h"
#include "base/input.h"
#include "readers/recording/problems.h"
#include "readers/recording/rows.h"

namespace stageline::recording {
namespace {

constexpr size_t kReadBytes = size_t{1} << 18;
constexpr size_t kMaxChunkBytes = kChunkHeaderBytes + kMaxPayloadBytes + 8;
constexpr int64_t kFreeSuspicion = int64_t{64} << 20;

// A window that slides over the file: it holds the bytes [begin(), begin() + text().size()).
class Window {
 public:
  // `read` fills the given buffer from where it stopped before, and returns how many bytes it wrote; 0 at the end.
  using Read = std::function<Result<size_t>(char*, size_t)>;
  explicit Window(Read read) : read_(std::move(read)) {}

  // Reads until `bytes` from `at` on are in the window, or until the file ends.
  Status want(int64_t at, size_t bytes) {
    if (at > begin_ + static_cast<int64_t>(kReadBytes)) {
      data_.erase(0, at - begin_);
      begin_ = at;
    }
    while (!ended_ && begin_ + std::ssize(data_) < at + static_cast<int64_t>(bytes)) {
      const size_t had = data_.size();
      data_.resize(had + kReadBytes);
      Result<size_t> got = read_(data_.data() + had, kReadBytes);
      data_.resize(had + (got ? *got : 0));
      if (!got) return std::move(got).error();
      ended_ = *got == 0;
    }
    return {};
  }
  // Returns everything in the window from `at` on.
  std::string_view from(int64_t at) const {
    const size_t skip = std::max<int64_t>(0, at - begin_);
    return skip >= data_.size() ? std::string_view() : std::string_view(data_).substr(skip);
  }
  bool ended() const { return ended_; }
  int64_t end() const { return begin_ + std::ssize(data_); }

 private:
  Read read_;
  std::string data_;
  int64_t begin_ = 0;
  bool ended_ = false;
};

bool header_is_right(std::string_view bytes) {
  if (bytes.size() < kChunkHeaderBytes || !bytes.starts_with(kChunkMagic)) return false;
  if (number_at<uint32_t>(bytes, kChunkBytesAt) > kMaxPayloadBytes) return false;
  char copy[kChunkHeaderBytes];
  std::copy_n(bytes.data(), kChunkHeaderBytes, copy);
  std::fill_n(copy + kChunkHeaderCrcAt, 8, '\0');
  return crc32c({copy, kChunkHeaderBytes}) == number_at<uint32_t>(bytes, kChunkHeaderCrcAt);
}

// Goes through every intact chunk of `window`, which begins with a file's header or anywhere in a file.
class Walk {
 public:
  Walk(Window window, ChunkSink& sink) : window_(std::move(window)), sink_(sink) {}

  Result<ChunkCounts> go(FileHead& head) {
    want(kFileHeaderBytes);
    head = parse_head(window_.from(0));
    at_ = good_until_ = head.good ? static_cast<int64_t>(kFileHeaderBytes) : 0;
    for (;;) {
      want(kMaxChunkBytes);
      const std::string_view bytes = window_.from(at_);
      if (bytes.empty()) break;
      if (header_is_right(bytes)) take(bytes);
      else find_header(bytes);
    }
    counts_.bytes = window_.end();
    // After the last chunk there may be a piece of one that was being written, or damage.
    const int64_t rest = window_.end() - good_until_;
    counts_.torn = rest > 0 && (torn_here_ || rest < static_cast<int64_t>(kChunkHeaderBytes));
    if (rest > 0 && !counts_.torn) counts_.skipped_bytes += rest;
    if (read_error_ && counts_.chunks == 0) return std::move(*read_error_);
    if (read_error_) counts_.torn = true;
    return counts_;
  }

 private:
  void want(size_t bytes) {
    if (read_error_) return;
    if (Status status = window_.want(at_, bytes); !status) read_error_ = std::move(status.error());
  }
  void skip(size_t bytes) {
    if (counts_.first_damage < 0) counts_.first_damage = at_;
    at_ += static_cast<int64_t>(bytes);
  }

  void find_header(std::string_view bytes) {
    const size_t next = bytes.find(kChunkMagic, 1);
    // The magic number may lie across the end of the window.
    const size_t step = next != std::string_view::npos   ? next
                        : window_.ended() || read_error_ ? bytes.size()
                                                         : bytes.size() - kChunkMagic.size() + 1;
    skip(std::max<size_t>(step, 1));
  }

  // Takes the chunk whose header `bytes` begin with, or skips it where its payload is torn or damaged.
  void take(std::string_view bytes) {
    const size_t payload_bytes = number_at<uint32_t>(bytes, kChunkBytesAt);
    const size_t whole = (kChunkHeaderBytes + payload_bytes + 7) / 8 * 8;
    if (bytes.size() < kChunkHeaderBytes + payload_bytes) {
      torn_here_ = true;
      return skip(4);
    }
    const std::string_view payload = bytes.substr(kChunkHeaderBytes, payload_bytes);
    if (crc32c(payload) != number_at<uint32_t>(bytes, kChunkPayloadCrcAt)) {
      ++counts_.damaged;
      suspicion_ += static_cast<int64_t>(payload_bytes);
      return skip(suspicion_ < std::max(kFreeSuspicion, kMaxSuspicion * window_.end()) ? 4 : whole);
    }
    counts_.skipped_bytes += at_ - good_until_;
    torn_here_ = false;
    Chunk chunk{.type = static_cast<ChunkType>(bytes[kChunkTypeAt]),
                .codec = static_cast<uint8_t>(bytes[kChunkCodecAt]),
                .flags = number_at<uint16_t>(bytes, kChunkFlagsAt),
                .sequence = number_at<uint32_t>(bytes, kChunkSequenceAt),
                .first_ticks = number_at<uint64_t>(bytes, kChunkTicksAt),
                .offset = at_,
                .payload = payload,
                .whole = bytes.substr(0, std::min(whole, bytes.size()))};
    if (counts_.first_chunk < 0) counts_.first_chunk = at_;
    sink_.take(chunk);
    ++counts_.chunks;
    at_ += static_cast<int64_t>(whole);
    good_until_ = at_;
  }

  Window window_;
  ChunkSink& sink_;
  ChunkCounts counts_;
  std::optional<Error> read_error_;
  int64_t at_ = 0, good_until_ = 0;
  int64_t suspicion_ = 0;  // payload bytes of damaged chunks so far
  bool torn_here_ = false;
};

// Reads the bytes [at, end) of a file, in order.
Window::Read read_between(const Places& file, int64_t at, int64_t end) {
  return [&file, at, end](char* out, size_t size) mutable -> Result<size_t> {
    const size_t want = std::min<size_t>(size, std::max<int64_t>(0, end - at));
    const size_t got = file.read(at, out, want);
    at += static_cast<int64_t>(got);
    return got;
  };
}

// Gives the chunks before a position to one sink and the others to another.
class DividedSink : public ChunkSink {
 public:
  DividedSink(int64_t at, ChunkSink& before, ChunkSink& after) : at_(at), before_(before), after_(after) {}
  void take(const Chunk& chunk) override { (chunk.offset < at_ ? before_ : after_).take(chunk); }

 private:
  int64_t at_;
  ChunkSink &before_, &after_;
};

}  // namespace

FileHead parse_head(std::string_view bytes) {
  FileHead head;
  if (bytes.size() < kFileHeaderBytes || !bytes.starts_with(kFileMagic)) return head;
  char copy[kFileHeaderBytes];
  std::copy_n(bytes.data(), kFileHeaderBytes, copy);
  std::fill_n(copy + kFileCrcAt, 4, '\0');
  head.good = crc32c({copy, kFileHeaderBytes}) == number_at<uint32_t>(bytes, kFileCrcAt);
  if (!head.good) return head;
  head.version = number_at<uint32_t>(bytes, kFileVersionAt);
  head.part = number_at<uint32_t>(bytes, kFilePartAt);
  head.pid = number_at<uint32_t>(bytes, kFilePidAt);
  head.rank = number_at<int32_t>(bytes, kFileRankAt);
  head.tick_shift = number_at<uint8_t>(bytes, kFileTickShiftAt);
  head.ticks_per_second = number_at<uint64_t>(bytes, kFileTicksAt);
  head.start_realtime_ns = number_at<uint64_t>(bytes, kFileRealtimeAt);
  head.uuid = bytes.substr(kFileUuidAt, 16);
  return head;
}

Result<ChunkCounts> for_each_chunk(const std::string& path, FileHead& head, ChunkSink& sink, Progress* progress) {
  TRY(input, Input::open(path, progress));
  return Walk(Window([&](char* out, size_t size) { return input->read(out, size); }), sink).go(head);
}

Result<std::optional<ChunkCounts>> for_newest_chunks(const std::string& path, int64_t newest_bytes, FileHead& head,
                                                     ChunkSink& tables, ChunkSink& sink) {
  const Places file(path);
  std::error_code unknown;
  const int64_t size = std::filesystem::file_size(path, unknown);
  if (!file.is_open() || unknown || size <= newest_bytes) return std::optional<ChunkCounts>();
  if (size <= kTableBytes + newest_bytes) {  // nothing lies between
    DividedSink both(size - newest_bytes, tables, sink);
    TRY(counts, Walk(Window(read_between(file, 0, size)), both).go(head));
    return head.good ? std::optional<ChunkCounts>(*counts) : std::nullopt;
  }
  TRY(begin, Walk(Window(read_between(file, 0, kTableBytes)), tables).go(head));
  if (!head.good) return std::optional<ChunkCounts>();
  FileHead none;
  TRY(counts, Walk(Window(read_between(file, size - newest_bytes, size)), sink).go(none));
  if (counts->first_damage == 0) counts->skipped_bytes -= std::min(counts->skipped_bytes, counts->first_chunk);
  return std::optional<ChunkCounts>(*counts);
}

void report_damage(const ChunkCounts& counts, const std::string& path, Diagnostics& diagnostics) {
  diagnostics.add(problem::recording_damaged, {path, 0, counts.first_damage}, counts.skipped_bytes);
  if (counts.torn) diagnostics.add(problem::recording_torn_tail, {path, 0, counts.bytes});
}

}  // namespace stageline::recording
