#include "base/gzip_index.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>

namespace stageline {
namespace {

constexpr int64_t kPointBytes = int64_t{4} << 20;
constexpr size_t kWindowBytes = 32768;
constexpr size_t kChunkBytes = size_t{1} << 17;

class Inflater {
 public:
  explicit Inflater(const std::string& path) : path_(path), in_(new unsigned char[kChunkBytes]) {}
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (started_) inflateEnd(&stream);
    if (fd_ >= 0) ::close(fd_);
  }

  // Continues at a position of the file. `raw` means that the position is inside a member.
  Status start(int64_t at, bool raw) {
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0)
      return Error{errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                   std::string("cannot open: ") + strerror(errno),
                   {path_},
                   ""};
    position_ = at;
    if (inflateInit2(&stream, raw ? -15 : 15 + 16) != Z_OK)
      return Error{ErrorCode::kIo, "zlib cannot start", {path_}, ""};
    started_ = true;
    return {};
  }

  // Makes input available unless the file is finished. Returns false when it is finished.
  Result<bool> fill() {
    if (stream.avail_in > 0) return true;
    for (;;) {
      const ssize_t n = ::pread(fd_, in_.get(), kChunkBytes, position_);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Error{ErrorCode::kIo, std::string("cannot read: ") + strerror(errno), {path_}, ""};
      position_ += n;
      stream.next_in = in_.get();
      stream.avail_in = static_cast<uInt>(n);
      return n > 0;
    }
  }
  // Returns the position in the file of the next byte that zlib has not consumed.
  int64_t in_position() const { return position_ - stream.avail_in; }

  // Skips `n` bytes of input.
  Status skip(size_t n) {
    while (n > 0) {
      TRY(more, fill());
      if (!*more) return {};
      const auto step = static_cast<uInt>(std::min<size_t>(n, stream.avail_in));
      stream.next_in += step;
      stream.avail_in -= step;
      n -= step;
    }
    return {};
  }

  z_stream stream{};

 private:
  const std::string& path_;
  std::unique_ptr<unsigned char[]> in_;
  int64_t position_ = 0;
  int fd_ = -1;
  bool started_ = false;
};

}  // namespace

Result<std::string> GzipIndex::read_at(int64_t offset, size_t size) {
  const auto after = std::upper_bound(points_.begin(), points_.end(), offset,
                                      [](int64_t at, const Point& point) { return at < point.out; });
  const Point* const from = after == points_.begin() ? nullptr : &*(after - 1);
  const bool raw_start = from != nullptr && from->window != nullptr;
  Inflater inflater(path_);
  int64_t out = 0;  // position, in the decompressed text, of what inflate writes next
  TRY_OK(inflater.start(from ? from->in - (raw_start && from->bits > 0) : 0, raw_start));
  z_stream& stream = inflater.stream;
  if (from) {
    out = from->out;
    if (raw_start) {
      if (from->bits > 0) {
        TRY(more, inflater.fill());
        if (!*more) return Error{ErrorCode::kBadInput, "the file is shorter than it was", {path_}, ""};
        const int byte = *stream.next_in++;
        --stream.avail_in;
        inflatePrime(&stream, from->bits, byte >> (8 - from->bits));
      }
      inflateSetDictionary(&stream, from->window.get(), kWindowBytes);
    }
  }
  // The last 32 KiB of output, as a ring buffer that inflate writes to.
  std::unique_ptr<unsigned char[]> ring(new unsigned char[kWindowBytes]());
  if (raw_start) memcpy(ring.get(), from->window.get(), kWindowBytes);
  size_t at = 0;  // position in the ring
  bool raw = raw_start;
  int64_t last_point = points_.empty() ? -kPointBytes : points_.back().out;
  std::string text;
  const int64_t end = offset + static_cast<int64_t>(size);
  // Position where this member's text begins; −1: it began before the restart point.
  int64_t member_out = raw_start ? -1 : out;
  const auto damaged = [&](const char* what) -> Result<std::string> {
    if (!text.empty()) return std::move(text);
    return Error{ErrorCode::kBadInput, what, {path_, 0, inflater.in_position()}, ""};
  };
  while (out < end) {
    TRY(more, inflater.fill());
    if (!*more) return text.empty() && out < offset ? damaged("the text ends before this place") : std::move(text);
    stream.next_out = ring.get() + at;
    stream.avail_out = static_cast<uInt>(kWindowBytes - at);
    const int rc = inflate(&stream, Z_BLOCK);
    if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) return damaged("gzip data is damaged");
    const size_t made = kWindowBytes - at - stream.avail_out;
    const int64_t made_end = out + static_cast<int64_t>(made);
    if (made_end > offset) {
      const size_t skip = std::max<int64_t>(0, offset - out);
      const size_t take = std::min(made_end, end) - (out + static_cast<int64_t>(skip));
      text.append(reinterpret_cast<const char*>(ring.get() + at + skip), take);
    }
    out = made_end;
    at = (at + made) % kWindowBytes;
    const bool at_block_end = (stream.data_type & 128) != 0 && (stream.data_type & 64) == 0;
    const bool window_full = member_out < 0 || out - member_out >= static_cast<int64_t>(kWindowBytes);
    if (at_block_end && window_full && out - last_point >= kPointBytes) {
      Point point;
      point.out = out;
      point.in = inflater.in_position();
      point.bits = static_cast<uint8_t>(stream.data_type & 7);
      point.window.reset(new unsigned char[kWindowBytes]);
      memcpy(point.window.get(), ring.get() + at, kWindowBytes - at);
      memcpy(point.window.get() + kWindowBytes - at, ring.get(), at);
      points_.push_back(std::move(point));
      last_point = out;
    }
    if (rc != Z_STREAM_END) continue;
    if (raw)  // reading began inside a member, so its checksum and length, which stand after the data, are skipped
      TRY_OK(inflater.skip(8));
    if (inflateReset2(&stream, 15 + 16) != Z_OK) return damaged("zlib cannot go on");
    raw = false;
    member_out = out;
  }
  return text;
}

}  // namespace stageline
