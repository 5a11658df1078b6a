#include "base/word_files.h"

#include <new>

#include "base/embedded.h"

namespace stageline {

extern const EmbeddedFile kWordFiles[];  // one, of cmake/chinese.cmake

const simdjson::dom::array& word_files() {
  static simdjson::dom::parser parser;
  static const simdjson::dom::array files = [] {
    simdjson::dom::array all;
    // cmake has read them, so nothing but memory can be missing.
    if (parser.parse(unpacked(kWordFiles[0])).get(all)) throw std::bad_alloc();
    return all;
  }();
  return files;
}

}  // namespace stageline
