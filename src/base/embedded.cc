#include "base/embedded.h"

#include <zstd.h>

namespace stageline {

extern const EmbeddedFile kEmbeddedFiles[];  // the last entry has no name

std::string unpacked(const EmbeddedFile& file) {
  std::string content(file.size, '\0');
  [[maybe_unused]] const size_t size =
      ZSTD_decompress(content.data(), content.size(), file.begin, file.end - file.begin);
  assert(size == content.size());
  return content;
}

std::string embedded_file(std::string_view name) {
  const EmbeddedFile* file = kEmbeddedFiles;
  while (file->name != name && !file->name.empty()) ++file;
  assert(!file->name.empty() && "cmake/embedded.cmake lists no such file");
  return unpacked(*file);
}

std::string embedded_part(std::string_view name, std::string_view part) {
  const std::string all = embedded_file(name);
  const size_t begin = all.find("\n-- " + std::string(part) + "\n");
  assert(begin != std::string::npos);
  return all.substr(begin, all.find("\n\n", begin) - begin);
}

std::vector<std::string> embedded_names(std::string_view prefix) {
  std::vector<std::string> out;
  for (const EmbeddedFile* file = kEmbeddedFiles; !file->name.empty(); ++file)
    if (file->name.starts_with(prefix)) out.emplace_back(file->name);
  return out;
}

}  // namespace stageline
