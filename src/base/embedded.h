// Files that the program carries in itself, compressed: fonts, licences. cmake/embedded.cmake lists them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stageline {

// As tools/embed.py writes it: [begin, end) is zlib's, of `size` bytes.
struct EmbeddedFile {
  std::string_view name;
  const char *begin, *end;
  unsigned long size;
};

// The content of a file that cmake/embedded.cmake lists by this name. Inflates anew at every call: 30 ms for the
// largest, a font.
std::string embedded_file(std::string_view name);
// The names that begin so, in the order of cmake/embedded.cmake.
std::vector<std::string> embedded_names(std::string_view prefix);

}  // namespace stageline
