#include "base/gzip_index.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

namespace stageline {
namespace {

constexpr int64_t kPointBytes = int64_t{4} << 20;
constexpr size_t kWindowBytes = 32768;
constexpr size_t kChunkBytes = size_t{1} << 17;

}  // namespace

class GzipIndex::Inflater {
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
      return make_error(ErrorCode::kIo, "zlib cannot start", "", {path_});
    started_ = true;
    return {};
  }

  // Makes input available unless the file is finished. Returns false when it is finished.
  Result<bool> fill() {
    if (stream.avail_in > 0) return true;
    for (;;) {
      const ssize_t n = ::pread(fd_, in_.get(), kChunkBytes, position_);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return make_error(ErrorCode::kIo, std::string("cannot read: ") + strerror(errno), "", {path_});
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

// Goes on inflating from a restart point, or from the beginning of the file.
Status GzipIndex::resume(const Point* from, Inflater& inflater) const {
  const bool raw = from && from->window;
  TRY_OK(inflater.start(from ? from->in - (raw && from->bits > 0) : 0, raw));
  if (!raw) return {};
  if (from->bits > 0) {
    TRY(more, inflater.fill());
    if (!*more) return make_error(ErrorCode::kBadInput, "the file is shorter than it was", "", {path_});
    const int byte = *inflater.stream.next_in++;
    --inflater.stream.avail_in;
    inflatePrime(&inflater.stream, from->bits, byte >> (8 - from->bits));
  }
  inflateSetDictionary(&inflater.stream, from->window.get(), kWindowBytes);
  return {};
}

// Adds a restart point at `out`. The 32 KiB before it end at `at` of the ring.
void GzipIndex::add_point(int64_t out, const Inflater& inflater, const unsigned char* ring, size_t at) {
  Point point{.out = out, .in = inflater.in_position(), .bits = static_cast<uint8_t>(inflater.stream.data_type & 7)};
  point.window.reset(new unsigned char[kWindowBytes]);
  memcpy(point.window.get(), ring + at, kWindowBytes - at);
  memcpy(point.window.get() + kWindowBytes - at, ring, at);
  points_.push_back(std::move(point));
}

Result<std::string> GzipIndex::read_at(int64_t offset, size_t size) {
  const auto after = std::ranges::upper_bound(points_, offset, {}, &Point::out);
  const Point* const from = after == points_.begin() ? nullptr : &*(after - 1);
  Inflater inflater(path_);
  TRY_OK(resume(from, inflater));
  z_stream& stream = inflater.stream;
  int64_t out = from ? from->out : 0;  // position, in the decompressed text, of what inflate writes next
  bool raw = from && from->window;     // reading began inside a member
  // The last 32 KiB of output, as a ring buffer that inflate writes to.
  std::unique_ptr<unsigned char[]> ring(new unsigned char[kWindowBytes]());
  if (raw) memcpy(ring.get(), from->window.get(), kWindowBytes);
  size_t at = 0;  // position in the ring
  int64_t last_point = points_.empty() ? -kPointBytes : points_.back().out;
  std::string text;
  const int64_t end = offset + static_cast<int64_t>(size);
  // Position where this member's text begins; −1: it began before the restart point.
  int64_t member_out = raw ? -1 : out;
  const auto damaged = [&](const char* what) -> Result<std::string> {
    if (!text.empty()) return std::move(text);
    return make_error(ErrorCode::kBadInput, what, "", {path_, 0, inflater.in_position()});
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
    if (at_block_end && window_full && out - last_point >= kPointBytes)
      add_point(last_point = out, inflater, ring.get(), at);
    if (rc != Z_STREAM_END) continue;
    if (raw) TRY_OK(inflater.skip(8));  // the checksum and length, which stand after the data of a member
    if (inflateReset2(&stream, 15 + 16) != Z_OK) return damaged("zlib cannot go on");
    raw = false;
    member_out = out;
  }
  return text;
}

}  // namespace stageline
