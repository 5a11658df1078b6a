#include "base/inflate_bytes.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>

namespace stageline {
namespace {

// Doubles the size of `out`, up to the limit. Returns false when it is full.
bool more_room(std::string& out, size_t used, size_t limit) {
  if (used < out.size()) return true;
  if (out.size() >= limit) return false;
  out.resize(std::min(limit, std::max<size_t>(out.size() * 2, size_t{1} << 16)));
  return true;
}

}  // namespace

std::optional<std::string> inflate_bytes(std::string_view bytes, size_t limit) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 32) != Z_OK) return std::nullopt;
  std::string out;
  size_t used = 0;
  int rc = Z_OK;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(std::min<size_t>(bytes.size(), UINT32_MAX));
  while (rc == Z_OK && more_room(out, used, limit)) {
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    stream.avail_out = static_cast<uInt>(std::min<size_t>(out.size() - used, size_t{1} << 30));
    const uInt room = stream.avail_out;
    rc = inflate(&stream, Z_NO_FLUSH);
    used += room - stream.avail_out;
    if (rc == Z_BUF_ERROR && stream.avail_in > 0) rc = Z_OK;
  }
  inflateEnd(&stream);
  if (rc != Z_STREAM_END) return std::nullopt;
  out.resize(used);
  return out;
}

std::optional<std::string> unzstd_bytes(std::string_view bytes, size_t limit) {
  ZSTD_DStream* stream = ZSTD_createDStream();
  if (!stream) return std::nullopt;
  std::string out;
  size_t used = 0, rc = 1;
  ZSTD_inBuffer source{bytes.data(), bytes.size(), 0};
  bool good = true;
  while (good && (rc != 0 || source.pos < source.size)) {
    if (!more_room(out, used, limit)) {
      good = false;
      break;
    }
    ZSTD_outBuffer target{out.data(), out.size(), used};
    const size_t read = source.pos;
    rc = ZSTD_decompressStream(stream, &target, &source);
    good = !ZSTD_isError(rc) && (target.pos > used || source.pos > read);
    used = target.pos;
  }
  ZSTD_freeDStream(stream);
  if (!good) return std::nullopt;
  out.resize(used);
  return out;
}

}  // namespace stageline
