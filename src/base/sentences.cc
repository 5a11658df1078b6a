#include "base/word_files.h"
#include "base/words.h"

namespace stageline {

const Sentences& sentences() {
  static const Sentences all = [] {
    Sentences read;
    for (const simdjson::dom::element& file : word_files()) {
      simdjson::dom::object names;
      if (file.get(names)) return Sentences();
      for (const auto& [name, languages] : names)
        // Sections that declare something else are listed next to the sentences.
        if (languages["en"].error() == 0 || languages["zh"].error() == 0)
          read.emplace(name, Text{declared_text(languages, "en"), declared_text(languages, "zh")});
    }
    return read;
  }();
  return all;
}

}  // namespace stageline
