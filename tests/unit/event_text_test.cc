// One event's own text, from plain, gzip and zstd files, and gzip's restart points.
#include "profile/event_text.h"

#include <doctest/doctest.h>
#include <zlib.h>
#include <zstd.h>

#include <random>

#include "base/gzip_index.h"
#include "kineto_fixture.h"

using namespace stageline;
using namespace kineto_fixture;

namespace {

std::string gzip(const std::string& text, int level = 6) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const size_t n = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3);
  REQUIRE_FALSE(ZSTD_isError(n));
  out.resize(n);
  return out;
}

}  // namespace

TEST_CASE("gzip index: any position of any file can be read, in any order") {
  Folder folder;
  std::mt19937 random(7);
  std::string text;
  while (text.size() < (size_t{26} << 20)) {
    const std::string line = "line " + std::to_string(text.size()) + " " + std::to_string(random()) + "\n";
    text += line;
    if (random() % 16 == 0) text.append(200, static_cast<char>('a' + random() % 26));
  }
  const size_t third = text.size() / 3;
  const std::string one = folder.add("one.gz", gzip(text));
  const std::string stored = folder.add("stored.gz", gzip(text, 0));
  const std::string members =
      folder.add("members.gz",
                 gzip(text.substr(0, third)) + gzip("") + gzip(text.substr(third, 10)) + gzip(text.substr(third + 10)));
  for (const std::string& path : {one, stored, members}) {
    CAPTURE(path);
    GzipIndex index(path);
    int64_t wrong = 0;
    for (int i = 0; i < 60; ++i) {
      const size_t at = i == 0 ? text.size() - 5 : i == 1 ? 0 : i == 2 ? third - 3 : random() % text.size();
      const size_t size = 1 + random() % 5000;
      const Result<std::string> got = index.read_at(static_cast<int64_t>(at), size);
      REQUIRE_MESSAGE(got, (got ? "" : got.error().text()));
      wrong += *got != text.substr(at, size);
    }
    CHECK(wrong == 0);
    CHECK(index.point_count() >= 4);
    CHECK(index.point_count() <= 8);
    CHECK_FALSE(index.read_at(static_cast<int64_t>(text.size()) + 100, 10));
  }
  const std::string whole = gzip(text);
  GzipIndex cut(folder.add("cut.gz", whole.substr(0, whole.size() / 2)));
  CHECK(*cut.read_at(1000, 100) == text.substr(1000, 100));
  CHECK_FALSE(cut.read_at(static_cast<int64_t>(text.size()) - 100, 10));
  CHECK_FALSE(GzipIndex(folder.path() + "/none.gz").read_at(0, 1));
}

TEST_CASE("event text: of plain, gzip and zstd files, also long and damaged events") {
  Folder folder;
  std::string events;
  for (int i = 0; i < 3000; ++i) events += op("op" + std::to_string(i), i * 10, 5, i) + ",\n";
  const std::string longest(50'000, 'n');
  events += op(longest, 40'000, 5, 1) + ",\n" + op("5\" disk", 40'100, 5, 2) + ",\n" + op("last", 40'200, 5, 3);
  const std::string text = trace(events);
  for (const auto& [name, bytes] :
       {std::pair<std::string, std::string>{"t.json", text}, {"t.json.gz", gzip(text)}, {"t.json.zst", zstd(text)}}) {
    CAPTURE(name);
    const std::string path = folder.add(name, bytes);
    const Trace t = read_with("kineto", {path});
    const Part& part = t.parts[0];
    EventTexts texts;
    for (const std::string wanted : {"op2999", "op0", "op1500", "last", "5\" disk", longest.c_str()}) {
      const uint32_t slice = slice_named(t, wanted);
      const Result<std::string> got = texts.text(part, slice);
      REQUIRE_MESSAGE(got, (got ? "" : got.error().text()));
      CHECK(got->find("\"name\": \"" + wanted + "\"") != std::string::npos);
      CHECK(got->back() == '}');
      CHECK(slice_of_index(part, part.slices.file_index[slice]) == slice);
    }
    CHECK(slice_of_index(part, 1'000'000) == kNoSliceIndex);
    folder.add(name, bytes + "\n");
    const Result<std::string> changed = texts.text(part, 0);
    REQUIRE_FALSE(changed);
    CHECK(changed.error().what.find("changed") != std::string::npos);
  }
}
