#include "base/input.h"

#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <string>

#include "base/output_file.h"

using namespace stageline;

namespace {

std::string gzip(const std::string& text) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Result<std::string> read_back(const std::string& bytes) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("stageline-input-" + std::to_string(getpid()))).string();
  REQUIRE(write_file(path, bytes));
  Result<std::string> text = read_all(path, size_t{1} << 20);
  std::filesystem::remove(path);
  return text;
}

}  // namespace

TEST_CASE("gzip members in a row, with padding after them") {
  const std::string two = gzip("one\n") + gzip("two\n");
  for (const std::string& padding :
       {std::string(), std::string(1, '\0'), std::string(2, '\0'), std::string(1000, '\0')}) {
    const Result<std::string> text = read_back(two + padding);
    REQUIRE_MESSAGE(text, padding.size());
    CHECK(*text == "one\ntwo\n");
  }
}

TEST_CASE("a cut gzip member is an error") {
  const std::string two = gzip("one\n") + gzip("two\n");
  const size_t first = gzip("one\n").size();
  for (size_t size = 4; size < two.size(); ++size) {
    const Result<std::string> text = read_back(two.substr(0, size));
    CHECK_MESSAGE(static_cast<bool>(text) == (size == first), size);
  }
}
