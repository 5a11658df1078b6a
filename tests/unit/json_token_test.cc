#include "base/json_token.h"

#include <doctest/doctest.h>
#include <simdjson.h>

#include <string>
#include <string_view>
#include <vector>

using namespace stageline;
namespace od = simdjson::ondemand;

namespace {

// Every token of every array of an object, as the readers walk it.
void walk(od::parser& parser, const std::string& padded, size_t size) {
  const std::string_view text(padded.data(), size);
  od::document document;
  od::object object;
  if (parser.iterate(text, padded.size()).get(document) || document.get_object().get(object)) return;
  for (auto field : object) {
    std::string_view key;
    od::value value;
    if (field.unescaped_key().get(key) || field.value().get(value)) return;
    const std::string_view token = raw_token(value, text);
    REQUIRE(token.size() <= size);
    od::array array;
    if (!token.starts_with("[") || value.get_array().get(array)) continue;
    for (auto element : array) {
      od::value number;
      if (element.get(number)) return;
      const std::string_view inner = raw_token(number, text);
      REQUIRE((inner.empty() || (inner.data() >= text.data() && inner.data() + inner.size() <= text.data() + size)));
    }
  }
}

}  // namespace

TEST_CASE("tokens of whole JSON") {
  od::parser parser;
  const std::string text = R"({"a": 1697793307213.760986 , "b":"x", "c":null,"d":[1, 2]})" + std::string(64, ' ');
  const std::string_view json = std::string_view(text).substr(0, text.size() - 64);
  od::document document = parser.iterate(json, text.size());
  od::object object = document.get_object();
  std::vector<std::string_view> tokens;
  for (auto field : object) {
    od::value value = field.value();
    tokens.push_back(raw_token(value, json));
  }
  CHECK(tokens == std::vector<std::string_view>{"1697793307213.760986", "\"x\"", "null", "["});
}

// A parser that has seen a larger text keeps its token positions; cut text must not lead there.
TEST_CASE("tokens of damaged JSON stay inside the text") {
  od::parser parser;
  std::string large = "{\"a\":[";
  for (int i = 0; i < 5000; ++i) large += "12345.5,";
  large += "1]}";
  const std::string whole =
      R"({"total":100.5,"fwd_start":[0.5,10],"fwd_end":[9.25,19,[],{"x":1}],"bwd_start":[null,"y"]})";
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    for (const char replacement : {'\0', ',', ':', '[', ']', '{', '}', '"', '1'}) {
      std::string text = whole;
      if (replacement == '\0') text.resize(cut);
      else if (cut < text.size()) text[cut] = replacement;
      const size_t size = text.size();
      walk(parser, large + std::string(64, ' '), large.size());
      walk(parser, text + std::string(64, ' '), size);
    }
  }
}
