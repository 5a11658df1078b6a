#include "base/word_files.h"

#include <new>

namespace stageline {

// cmake/chinese.cmake writes this.
extern const std::string_view kWords;

const simdjson::dom::array& word_files() {
  static simdjson::dom::parser parser;
  static const simdjson::dom::array files = [] {
    simdjson::dom::array all;
    // cmake has read them, so nothing but memory can be missing.
    if (parser.parse(kWords.data(), kWords.size()).get(all)) throw std::bad_alloc();
    return all;
  }();
  return files;
}

}  // namespace stageline
