#include "base/gzip_bytes.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include "base/parallel.h"

using namespace stageline;

namespace {

std::string inflated(const std::string& gzip) {
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  std::string out, chunk(size_t{1} << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzip.data()));
  stream.avail_in = static_cast<uInt>(gzip.size());
  int code = Z_OK;
  while (code == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    code = inflate(&stream, Z_NO_FLUSH);
    out.append(chunk, 0, chunk.size() - stream.avail_out);
  }
  CHECK(code == Z_STREAM_END);  // with the sum and the length at its end
  CHECK(stream.avail_in == 0);  // one member, nothing behind it
  inflateEnd(&stream);
  return out;
}

std::string by_zlib(const std::string& bytes) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Texts that repeat themselves within 32 KiB, with something new in between.
std::string some_text(size_t size) {
  std::string out;
  for (uint64_t k = 0; out.size() < size; ++k)
    out += "cell " + std::to_string(k * 2654435761u % 997) + " of rank " + std::to_string(k % 61) + "; ";
  out.resize(size);
  return out;
}

}  // namespace

TEST_CASE("gzip_bytes: what fits one piece is zlib's own stream, byte for byte") {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{300'000}, kGzipPiece}) {
    const std::string text = some_text(size);
    CHECK(gzip_bytes(text) == by_zlib(text));
    CHECK(inflated(gzip_bytes(text)) == text);
  }
}

TEST_CASE("gzip_bytes: pieces make one stream, the same with any number of threads, and hardly longer than as one") {
  for (const size_t size : {kGzipPiece + 1, 2 * kGzipPiece, 2 * kGzipPiece + 70'001}) {
    const std::string text = some_text(size), made = gzip_bytes(text);
    CHECK(inflated(made) == text);
    CHECK(made.size() < by_zlib(text).size() + by_zlib(text).size() / 100);
    set_thread_count(1);
    CHECK(gzip_bytes(text) == made);
    set_thread_count(0);
  }
}
