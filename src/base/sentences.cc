#include <simdjson.h>

#include <string_view>

#include "base/words.h"

namespace stageline {

// cmake/chinese.cmake writes this.
extern const std::string_view kWords;

const Sentences& sentences() {
  static const Sentences all = [] {
    Sentences read;
    simdjson::dom::parser parser;
    simdjson::dom::array files;
    if (parser.parse(kWords.data(), kWords.size()).get(files)) return read;
    for (const auto& file : files) {
      simdjson::dom::object names;
      if (file.get(names)) return Sentences();
      for (const auto& [name, languages] : names) {
        // Words of an analysis' tables stand beside its sentences.
        if (name == "answers" || name == "columns_zh" || name == "sentences_zh") continue;
        std::string_view en, zh;
        if (languages["en"].get(en)) en = {};
        if (languages["zh"].get(zh)) zh = {};
        read.emplace(name, Text{std::string(en), std::string(zh)});
      }
    }
    return read;
  }();
  return all;
}

}  // namespace stageline
