#include "base/json_places.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

using namespace stageline;

namespace {

std::string joined(const JsonPath& path) {
  std::string out;
  for (const std::string& key : path) out += "/" + key;
  return out;
}

struct Taken {
  std::vector<std::pair<std::string, std::string>> values;  // place, text
  JsonWalk walk;
};

// Returns the values of `text` at places that `wanted` accepts; all around them are entered.
Taken taken(const std::string& text, const std::function<JsonPlace(const std::string&)>& place,
            size_t max_bytes = size_t{64} << 20) {
  const std::string path = (std::filesystem::temp_directory_path() / "stageline_json_places_test.json").string();
  std::ofstream(path, std::ios::binary) << text;
  Result<Input> input = Input::open(path);
  REQUIRE(input);
  Taken out;
  const Result<JsonWalk> walk = walk_json(
      *input, [&](const JsonPath& at) { return place(joined(at)); },
      [&](const JsonPath& at, std::string_view value) { out.values.emplace_back(joined(at), value); }, max_bytes);
  REQUIRE(walk);
  out.walk = *walk;
  std::filesystem::remove(path);
  return out;
}

JsonPlace items(const std::string& at) {
  return at == "/list/" ? JsonPlace::kTake : at == "" || at == "/list" ? JsonPlace::kEnter : JsonPlace::kPass;
}

}  // namespace

TEST_CASE("json places: elements of a list deep in an object are handed over, everything else is passed") {
  const Taken all = taken(
      "{\"a\": {\"list\": [1]}, \"b\": \"list\\\": [\", \"list\": [{\"x\": \"]},{\"}, [1, [2]], 17 , \"te\\\"xt\", null], \"c\": 3}",
      items);
  CHECK(all.walk.whole);
  REQUIRE(all.values.size() == 5);
  CHECK(all.values[0].second == "{\"x\": \"]},{\"}");
  CHECK(all.values[1].second == "[1, [2]]");
  CHECK(all.values[2].second == "17 ");
  CHECK(all.values[3].second == "\"te\\\"xt\"");
  CHECK(all.values[4].second == "null");
  for (const auto& [at, text] : all.values) CHECK(at == "/list/");
}

TEST_CASE("json places: a value that goes over the ends of windows is whole") {
  std::string text = "{\"list\": [", expected;
  size_t count = 0;
  while (text.size() < 3 * kDefaultWindowBytes) {
    ++count;
    expected = "{\"n\": " + std::to_string(count) + ", \"t\": \"" + std::string(count % 97 / 2 * 2, '\\') + "\"}";
    text += (count > 1 ? "," : "") + expected;
  }
  const Taken all = taken(text + "]}", items);
  CHECK(all.walk.whole);
  CHECK(all.values.size() == count);
  CHECK(all.values.back().second == expected);
}

TEST_CASE("json places: a text that ends early or is damaged ends the walk, and the position is returned") {
  const std::string text = "{\"list\": [{\"n\": 1}, {\"n\": 2}";
  for (const char* end : {"", "}", ", {\"n\": 3", ", {\"n\": \"", "]", "]]"}) {
    const Taken all = taken(text + end, items);
    CHECK_FALSE(all.walk.whole);
    CHECK(all.values.size() == 2);
    CHECK(all.walk.broken_at >= static_cast<int64_t>(text.size()));
  }
  for (const char* whole : {"", "  ", "x", "{]", "{\"a\" 1}", "{1: 2}", "}"}) CHECK(taken(whole, items).values.empty());
  CHECK_FALSE(taken(std::string(5000, '['), [](const std::string&) { return JsonPlace::kEnter; }).walk.whole);
  CHECK(taken("[" + std::string(5000, '[') + std::string(5000, ']') + "]", [](const std::string& at) {
          return at.empty() ? JsonPlace::kEnter : JsonPlace::kTake;
        }).walk.whole);  // depth is bounded only where it is entered
}

TEST_CASE("json places: a value above the limit is skipped and counted") {
  const Taken all = taken("{\"list\": [\"" + std::string(1000, 'x') + "\", \"y\"]}", items, 100);
  CHECK(all.walk.whole);
  CHECK(all.walk.too_long == 1);
  REQUIRE(all.values.size() == 1);
  CHECK(all.values[0].second == "\"y\"");
}
