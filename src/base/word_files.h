// words.json of all rooms, which cmake/chinese.cmake builds into the program, parsed once. Sentences (base/words.h) are
// one part of them; "tables", "flags" and other sections declare a room's tables and flags, with the texts that people
// read.
#pragma once

#include <simdjson.h>

#include "base/vocabulary.h"

namespace stageline {

// Returns one element for each file. Their texts exist as long as the program. Throws std::bad_alloc.
const simdjson::dom::array& word_files();

// Calls visit(name, element) for every member of this section of all files.
template <class Visit> void for_each_declared(std::string_view section, Visit&& visit) {
  for (const simdjson::dom::element& file : word_files())
    if (simdjson::dom::object own; !file[section].get(own))
      for (const auto& [name, element] : own) visit(name, element);
}

// Returns the text at this key of an object or index of an array; "" where there is none.
inline std::string declared_text(const simdjson::dom::element& from, std::string_view key) {
  std::string_view text;
  return from[key].get(text) ? std::string() : std::string(text);
}
inline std::string declared_text(const simdjson::dom::element& from, size_t index) {
  std::string_view text;
  return from.at(index).get(text) ? std::string() : std::string(text);
}

}  // namespace stageline
