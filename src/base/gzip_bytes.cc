#include "base/gzip_bytes.h"

#include <zlib.h>
#include <zstd.h>

#include "base/parallel.h"

namespace stageline {
namespace {

// One piece of the input as raw deflate data, which may refer back to the 32 KiB of input before it. Every piece but
// the last ends at a byte boundary, so that pieces can be joined.
struct Piece {
  std::string bytes;
  uLong crc = 0;
};

constexpr size_t kWindow = size_t{32} << 10;

Piece deflated(std::string_view all, size_t begin, size_t end) {
  z_stream stream{};
  [[maybe_unused]] int code = deflateInit2(&stream, 6, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
  assert(code == Z_OK);
  const auto at = [&](size_t offset) { return reinterpret_cast<Bytef*>(const_cast<char*>(all.data() + offset)); };
  const size_t before = std::min(begin, kWindow);
  if (before > 0) {
    code = deflateSetDictionary(&stream, at(begin - before), static_cast<uInt>(before));
    assert(code == Z_OK);
  }
  Piece piece;
  std::string chunk(size_t{1} << 18, '\0');
  stream.next_in = at(begin);
  stream.avail_in = static_cast<uInt>(end - begin);
  do {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    code = deflate(&stream, end < all.size() ? Z_SYNC_FLUSH : Z_FINISH);
    piece.bytes.append(chunk, 0, chunk.size() - stream.avail_out);
  } while (stream.avail_out == 0);
  deflateEnd(&stream);
  piece.crc = crc32(crc32(0, nullptr, 0), at(begin), static_cast<uInt>(end - begin));
  return piece;
}

void append_u32(std::string& out, uint64_t value) {
  for (int byte = 0; byte < 4; ++byte) out += static_cast<char>(value >> 8 * byte & 255);
}

// Doubles the size of `out`, up to the limit. Returns false when it is full.
bool more_room(std::string& out, size_t used, size_t limit) {
  if (used < out.size()) return true;
  if (out.size() >= limit) return false;
  out.resize(std::min(limit, std::max<size_t>(out.size() * 2, size_t{1} << 16)));
  return true;
}

}  // namespace

std::string gzip_bytes(std::string_view bytes) {
  const size_t count = std::max<size_t>(1, (bytes.size() + kGzipPiece - 1) / kGzipPiece);
  std::vector<Piece> pieces(count);
  const auto begin_of = [&](size_t i) { return i * kGzipPiece; };
  const auto end_of = [&](size_t i) { return std::min(bytes.size(), (i + 1) * kGzipPiece); };
  parallel_for(count, [&](size_t i) { pieces[i] = deflated(bytes, begin_of(i), end_of(i)); });
  // The header that zlib itself writes: deflate, no flags, no time, the usual effort, Unix.
  std::string out("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  uLong crc = crc32(0, nullptr, 0);
  for (size_t i = 0; i < count; ++i) {
    out += pieces[i].bytes;
    crc = crc32_combine(crc, pieces[i].crc, end_of(i) - begin_of(i));
    pieces[i].bytes = {};
  }
  append_u32(out, crc);
  append_u32(out, bytes.size());
  return out;
}

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
