#include "base/embedded.h"

#include <zlib.h>

#include <cassert>

namespace stageline {

extern const EmbeddedFile kEmbeddedFiles[];  // the last entry has no name

std::string embedded_file(std::string_view name) {
  const EmbeddedFile* file = kEmbeddedFiles;
  while (file->name != name && !file->name.empty()) ++file;
  assert(!file->name.empty() && "cmake/embedded.cmake lists no such file");
  std::string content(file->size, '\0');
  uLongf size = file->size;
  [[maybe_unused]] const int code =
      uncompress(reinterpret_cast<Bytef*>(content.data()), &size, reinterpret_cast<const Bytef*>(file->begin),
                 static_cast<uLong>(file->end - file->begin));
  assert(code == Z_OK && size == file->size);
  return content;
}

std::vector<std::string> embedded_names(std::string_view prefix) {
  std::vector<std::string> out;
  for (const EmbeddedFile* file = kEmbeddedFiles; !file->name.empty(); ++file)
    if (file->name.starts_with(prefix)) out.emplace_back(file->name);
  return out;
}

}  // namespace stageline
