// The objects of a long array, wherever windows end, and what damage leaves of them.
#include "base/json_events.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "base/output_file.h"

using namespace stageline;

namespace {

struct Found {
  std::vector<std::string> texts;
  std::vector<int64_t> offsets;
  bool array = false, finished = false;
  int64_t damaged = 0, first_damage = -1, array_end = -1;
};

Found objects_of(const std::string& json, JsonLayout layout = JsonLayout::kTrace) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("stageline-events-" + std::to_string(getpid()))).string();
  REQUIRE(write_file(path, json));
  Result<Input> input = Input::open(path);
  REQUIRE(input);
  JsonEvents events(*input, layout);
  Found found;
  for (;;) {
    const auto spans = events.next();
    REQUIRE(spans);
    if (spans->empty()) break;
    for (const JsonSpan& span : *spans) {
      found.texts.emplace_back(span.text);
      found.offsets.push_back(span.offset);
    }
  }
  found.array = events.found_array(), found.finished = events.finished();
  found.damaged = events.damaged(), found.first_damage = events.first_damage(), found.array_end = events.array_end();
  std::filesystem::remove(path);
  return found;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("objects are found in both layouts, with their places") {
  const Found bare = objects_of(R"([{"a":1}, {"b":{"c":"}"}}])");
  CHECK(bare.texts == Texts{R"({"a":1})", R"({"b":{"c":"}"}})"});
  CHECK(bare.offsets == std::vector<int64_t>{1, 10});
  CHECK(bare.finished);
  CHECK(bare.damaged == 0);
  CHECK(bare.array_end == 25);
  const Found named = objects_of("\xef\xbb\xbf {\"x\\\\\":[{\"no\":1}],\"traceEvents\":[{\"a\":1}],\"y\":{}}");
  CHECK(named.texts == Texts{R"({"a":1})"});
  CHECK(named.finished);
  CHECK(objects_of("{\"a\":1}\n{\"b\":2}{\"c\":3}", JsonLayout::kSequence).texts.size() == 3);
  CHECK_FALSE(objects_of("7").array);
}

// Whatever a window cuts, an escape, a quote or a brace, the objects are the same.
TEST_CASE("objects are the same wherever a window ends") {
  const Texts tricky = {R"({"n":"a\"}{\\","m":{"k":[{}]}})", R"({"n":"\\"})", R"({"n":"\\\""})"};
  size_t length = 2;
  for (const std::string& text : tricky) length += text.size() + 1;
  for (size_t shift = 0; shift < length; ++shift) {
    const std::string filler = "{\"f\":\"" + std::string(kDefaultWindowBytes - 12 - shift, 'x') + "\"}";
    const Found found = objects_of("[" + filler + "," + tricky[0] + "," + tricky[1] + "," + tricky[2] + "]");
    REQUIRE(found.texts.size() == 4);
    CHECK(Texts(found.texts.begin() + 1, found.texts.end()) == tricky);
    CHECK(found.damaged == 0);
    CHECK(found.finished);
  }
}

TEST_CASE("an object with a missing quote ends where the next one visibly begins") {
  const Found found = objects_of("[{\"a\":1},\n{\"b\":\"x},\n{\"c\":3},\n{\"d\":4}]");
  CHECK(found.damaged == 1);
  CHECK(found.first_damage == 10);
  REQUIRE(found.texts.size() == 4);
  CHECK(found.texts[0] == R"({"a":1})");
  CHECK(found.texts[2] == R"({"c":3})");
  CHECK(found.texts[3] == R"({"d":4})");
  CHECK(found.finished);
}

TEST_CASE("an object that is open at the end is split into its pieces") {
  const Found found = objects_of("[{\"a\":{\"x\":1},\n{\"b\":2},\n{\"c\":");
  CHECK(found.damaged == 1);
  CHECK_FALSE(found.finished);
  CHECK(found.array_end == -1);
  CHECK(std::ranges::find(found.texts, R"({"b":2})") != found.texts.end());
}

TEST_CASE("what is no object is damage, counted once a place, and text after the array once") {
  const Found found = objects_of(R"([1, {"a":1}, true, null, {"b":2}] rest of it)");
  CHECK(found.texts.size() == 2);
  CHECK(found.damaged == 4);
  CHECK(found.first_damage == 1);
}

TEST_CASE("an object is at most kMaxJsonObjectBytes") {
  const auto of_bytes = [](size_t bytes) { return "{\"f\":\"" + std::string(bytes - 8, 'x') + "\"}"; };
  const Found fits = objects_of("[" + of_bytes(kMaxJsonObjectBytes) + ",{\"a\":1}]");
  CHECK(fits.damaged == 0);
  CHECK(fits.texts.size() == 2);
  const Found over = objects_of("[" + of_bytes(kMaxJsonObjectBytes + 1) + ",\n{\"a\":1}]");
  CHECK(over.damaged >= 1);
  CHECK(std::ranges::find(over.texts, R"({"a":1})") != over.texts.end());
}

TEST_CASE("every byte is watched once and in order") {
  const std::string json = "[{\"a\":1},{\"b\":2}]  ";
  const std::string path =
      (std::filesystem::temp_directory_path() / ("stageline-watched-" + std::to_string(getpid()))).string();
  REQUIRE(write_file(path, json));
  Result<Input> input = Input::open(path);
  REQUIRE(input);
  JsonEvents events(*input, JsonLayout::kTrace);
  std::string watched;
  events.watch_bytes([&](std::string_view bytes) { watched += bytes; });
  while (!events.next()->empty()) continue;
  std::filesystem::remove(path);
  CHECK(watched == json);
  CHECK(events.bytes() == static_cast<int64_t>(json.size()));
}

TEST_CASE("a text is split where one object visibly ends and the next begins") {
  std::vector<JsonSpan> pieces;
  split_json_objects("{\"a\":1},{\"b\":2}\n{\"c\":\"},{\"}", 100, pieces);
  REQUIRE(pieces.size() >= 3);
  CHECK(pieces[0].text == "{\"a\":1}");
  CHECK(pieces[0].offset == 100);
  CHECK(pieces[1].offset == 108);
  CHECK(after_closing_brace("{\"a}\":[{}]} ", 0) == 11);
  CHECK(after_closing_brace("{\"a\":1", 0) == std::string_view::npos);
}
