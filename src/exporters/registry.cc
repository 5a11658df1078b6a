#include "exporters/exporter.h"

namespace stageline {

#define EXPORTER(id, title, makes, ...)                                 \
  Status write_##id(const ExportInput& input, const std::string& path); \
  const Exporter id##_exporter = {.name = title, .summary = makes, __VA_ARGS__};
#include "exporters/exporters.def"

const std::vector<const Exporter*>& exporters() {
  static const std::vector<const Exporter*> all = {
#define EXPORTER(id, ...) &id##_exporter,
#include "exporters/exporters.def"
  };
  return all;
}

const Exporter* find_exporter(std::string_view name) {
  for (const Exporter* exporter : exporters())
    if (exporter->name == dashed(name)) return exporter;
  return nullptr;
}

std::string rank_path(std::string_view path, int32_t rank) {
  size_t at = path.size();
  for (const std::string_view suffix : {".gz", ".json", ".txt"})
    if (path.substr(0, at).ends_with(suffix)) at -= suffix.size();
  return std::string(path.substr(0, at)) + ".rank" + std::to_string(rank) + std::string(path.substr(at));
}

Result<const Exporter*> choose_exporter(std::string_view to, std::string_view path) {
  std::vector<std::string> names;
  std::string list;
  for (const Exporter* exporter : exporters()) {
    names.emplace_back(exporter->name);
    append_item(list, names.back());
  }
  const bool compressed = path.ends_with(".gz") || path.ends_with(".zst");
  const auto checked = [&](const Exporter* exporter) -> Result<const Exporter*> {
    if (!compressed || (exporter->compresses && path.ends_with(".gz"))) return exporter;
    return make_error(
        ErrorCode::kUsage, std::string(exporter->name) + " is not written compressed",
        "leave the ending off, and compress the file afterwards; only .json.gz and .pftrace.gz are written directly",
        {std::string(path)});
  };
  if (!to.empty()) {
    if (const Exporter* exporter = find_exporter(to)) return checked(exporter);
    const std::string near = nearest(dashed(to), names);
    return make_error(ErrorCode::kUsage, "no exporter \"" + std::string(to) + "\"",
                      near.empty() ? "the kinds are " + list : "did you mean \"" + near + "\"?");
  }
  const std::string extension = file_extension(path);
  for (const Exporter* exporter : exporters())
    for (const char* known : exporter->extensions)
      if (extension == known) return checked(exporter);
  return make_error(ErrorCode::kUsage, "the kind of output cannot be told from its name",
                    "say it with --to; the kinds are " + list, {std::string(path)});
}

}  // namespace stageline
