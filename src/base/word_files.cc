#include "base/word_files.h"

namespace stageline {

// cmake/chinese.cmake writes this.
extern const std::string_view kWords;

const simdjson::dom::array& word_files() {
  static simdjson::dom::parser parser;
  static const simdjson::dom::array files = [] {
    simdjson::dom::array all;
    if (parser.parse(kWords.data(), kWords.size()).get(all)) all = parser.parse(std::string_view("[]")).value_unsafe();
    return all;
  }();
  return files;
}

}  // namespace stageline
