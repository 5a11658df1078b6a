// Input on plain, gzip and zstd files, whole and damaged: it ends, delivers every byte once and in
// order, and cuts windows at line ends only.
//
// Input: byte 0 chooses how the rest becomes a file (as it is; compressed; compressed and cut), bytes
// 1 and 2 the sizes of reads and windows.
#include <zlib.h>
#include <zstd.h>

#include <algorithm>

#include "base/input.h"
#include "fuzz.h"

namespace stageline::fuzz {
namespace {

constexpr size_t kMaxBytes = size_t{4} << 20;  // a few bytes of zstd can stand for gigabytes

std::string gzip_member(std::string_view bytes) {
  std::string out(compressBound(bytes.size()) + 64, '\0');
  z_stream stream{};
  FUZZ_CHECK(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "deflateInit2");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  FUZZ_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd_frame(std::string_view bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t n = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 1);
  FUZZ_CHECK(!ZSTD_isError(n), "ZSTD_compress");
  out.resize(n);
  return out;
}

// Reads `path` in pieces of `capacity`; `error` says whether it ended with one.
std::string read_in_pieces(const std::string& path, size_t capacity, bool& error) {
  std::string all;
  std::vector<char> piece(capacity);
  Result<Input> input = Input::open(path);
  FUZZ_CHECK(input, input.error().text());
  for (error = false; all.size() < kMaxBytes;) {
    const Result<size_t> n = input->read(piece.data(), piece.size());
    error = !n;
    if (!n || *n == 0) break;
    FUZZ_CHECK(*n <= piece.size(), "more than asked");
    all.append(piece.data(), *n);
  }
  return all;
}

void check_windows(const std::string& path, size_t window_bytes, std::string_view expected, bool error) {
  Result<Input> input = Input::open(path);
  std::string all;
  int64_t overlong = 0, reached = -1;
  bool after_end = false;
  const Result<int64_t> bytes = for_each_window(
      *input,
      [&](std::string_view window, int64_t offset) {
        FUZZ_CHECK(!window.empty() && !after_end, "a window after the last, or an empty one");
        FUZZ_CHECK(offset == static_cast<int64_t>(all.size()), "a gap between windows");
        after_end = window.back() != '\n' && window.back() != '\r';
        all += window;
      },
      window_bytes, &overlong, &reached);
  FUZZ_CHECK(overlong == 0 && static_cast<bool>(bytes) == !error, path);
  FUZZ_CHECK(reached == static_cast<int64_t>(all.size()), path);
  if (bytes) FUZZ_CHECK(*bytes == reached, path);
  // After damage a small read may have been given more, or less, of what came before it.
  const size_t common = error ? std::min(all.size(), expected.size()) : expected.size();
  FUZZ_CHECK(error || all.size() == expected.size(), std::to_string(all.size()));
  FUZZ_CHECK(all.compare(0, common, expected.substr(0, common)) == 0, "other bytes");
}

}  // namespace
}  // namespace stageline::fuzz

FUZZ_TARGET(input) {
  using namespace stageline;
  using namespace stageline::fuzz;
  static const TempFolder folder;
  Bytes input{data, size};
  const uint8_t how = input.byte(), read_size = input.byte(), window_size = input.byte();
  const std::string_view body = input.rest();
  std::string file(body);
  const size_t middle = body.size() / 3;
  if (how % 4 == 1) file = gzip_member(body.substr(0, middle)) + gzip_member(body.substr(middle));
  if (how % 4 == 2) file = zstd_frame(body.substr(0, middle)) + zstd_frame(body.substr(middle));
  if (how % 4 == 3) file = (how & 8) ? gzip_member(body) : zstd_frame(body);
  const bool is_cut = how % 4 == 3 && (how & 4) && !file.empty();
  if (is_cut) file.resize(file.size() - 1 - (how >> 4) % file.size());
  folder.write("input", file);
  const std::string path = folder / "input";

  bool error = false, small_error = false;
  const std::string all = read_in_pieces(path, kDefaultWindowBytes, error);
  const std::string in_pieces = read_in_pieces(path, size_t{read_size} + 1, small_error);
  if (all.size() >= kMaxBytes || in_pieces.size() >= kMaxBytes) {
    FUZZ_CHECK(!read_all(path, kMaxBytes / 2), "the limit of read_all");
    return 0;
  }
  FUZZ_CHECK(error == small_error, "an error depends on the size of reads");
  const size_t common = std::min(all.size(), in_pieces.size());
  FUZZ_CHECK(error || all.size() == in_pieces.size(), "length depends on the size of reads");
  FUZZ_CHECK(all.compare(0, common, in_pieces, 0, common) == 0, "bytes depend on the size of reads");
  if (how % 4 != 0) {
    const bool whole = !error && all == body;
    const bool part = error && body.starts_with(all);
    FUZZ_CHECK(is_cut ? whole || part || file.size() < 4 : whole, "what was compressed is not what was read");
  }
  check_windows(path, size_t{window_size} + 1, all, error);

  const Result<std::string> at_once = read_all(path, kMaxBytes);
  FUZZ_CHECK(static_cast<bool>(at_once) == !error, path);
  if (at_once) FUZZ_CHECK(*at_once == all, path);
  if (!all.empty()) FUZZ_CHECK(!read_all(path, all.size() - 1), "the limit of read_all");
  const std::string head = read_head(path, size_t{window_size});
  if (!error) FUZZ_CHECK(head == all.substr(0, window_size), "head");
  const auto line = line_of_offset(path, static_cast<int64_t>(all.size() / 2));
  FUZZ_CHECK(line >= 1 &&
                 (error ||
                  line == 1 + std::count(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), '\n')),
             "line");
  return 0;
}
