#include "base/chinese.h"

#include <simdjson.h>

#include <map>
#include <string>

namespace stageline {

// cmake/chinese.cmake writes these.
extern const std::string_view kChineseNames, kWords;

namespace {

using Texts = std::map<std::string, std::string, std::less<>>;

struct Dictionary {
  Texts names, sentences;

  Dictionary() {
    simdjson::dom::parser parser;
    simdjson::dom::object shared;
    if (!parser.parse(kChineseNames.data(), kChineseNames.size()).get(shared)) add(shared, names);
    simdjson::dom::array files;
    if (parser.parse(kWords.data(), kWords.size()).get(files)) return;
    for (const auto& file : files) {
      simdjson::dom::object own;
      if (!file["columns_zh"].get(own)) add(own, names);
      if (!file["sentences_zh"].get(own)) add(own, sentences);
    }
  }

  static void add(const simdjson::dom::object& from, Texts& to) {
    for (const auto& field : from)
      if (std::string_view text; !field.value.get(text)) to.emplace(field.key, text);
  }
};

const Dictionary& dictionary() {
  static const Dictionary known;
  return known;
}

std::string_view find(const Texts& texts, std::string_view key) {
  const auto at = texts.find(key);
  return at == texts.end() ? std::string_view() : at->second;
}

}  // namespace

std::string_view chinese_name(std::string_view key) { return find(dictionary().names, key); }

bool any_chinese_name(std::string_view prefix) {
  const auto at = dictionary().names.lower_bound(prefix);
  return at != dictionary().names.end() && std::string_view(at->first).starts_with(prefix);
}

std::string_view chinese_sentence(std::string_view english) { return find(dictionary().sentences, english); }

}  // namespace stageline
