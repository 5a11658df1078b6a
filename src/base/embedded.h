// Files that are stored in the program itself, compressed: fonts, licences, sentences. cmake/embedded.cmake lists them.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// One file as tools/embed.py writes it: [begin, end) is a frame of zstd that unpacks to `size` bytes.
struct EmbeddedFile {
  std::string_view name;
  const char *begin, *end;
  unsigned long size;
};

// Returns the content of this file.
std::string unpacked(const EmbeddedFile& file);
// Returns the content of the file that cmake/embedded.cmake lists by this name. Every call unpacks it again, which
// takes 10 ms for the largest, a font.
std::string embedded_file(std::string_view name);
// Returns a part of such a file: from the line "-- PART" to the next blank line or the end.
std::string embedded_part(std::string_view name, std::string_view part);
// Returns the names that begin with `prefix`, in the order of cmake/embedded.cmake.
std::vector<std::string> embedded_names(std::string_view prefix);

}  // namespace stageline
