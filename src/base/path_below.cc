#include "base/path_below.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/error_words.h"

namespace stageline {
namespace {

std::string real_path(const std::string& path) {
  if (path.find('\0') != std::string::npos) return "";
  char* const real = realpath(path.c_str(), nullptr);
  const std::string found = real ? real : "";
  free(real);
  return found;
}

Error not_allowed(std::string_view name, const Args& args = {}) {
  return worded_error(ErrorCode::kNotFound, name, args);
}

}  // namespace

bool is_below(const std::vector<std::string>& roots, std::string_view real_path) {
  return std::ranges::any_of(roots, [&](const std::string& root) {
    return real_path == root || root == "/" ||
           (real_path.size() > root.size() && real_path.starts_with(root) && real_path[root.size()] == '/');
  });
}

Result<std::string> path_below(const std::vector<std::string>& roots, const std::string& path, size_t max_entries) {
  namespace fs = std::filesystem;
  const std::string found = real_path(path);
  if (found.empty() || !is_below(roots, found)) return not_allowed("path.outside");
  struct stat about = {};
  if (stat(found.c_str(), &about) != 0 || (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)))
    return not_allowed("path.special");
  if (!S_ISDIR(about.st_mode) || max_entries == 0) return found;
  std::error_code error;
  size_t entries = 0;
  for (auto at = fs::recursive_directory_iterator(found, fs::directory_options::skip_permission_denied, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (++entries > max_entries) return not_allowed("path.many", Args().count("files", max_entries));
    if (!at->is_symlink(error)) continue;
    const std::string target = real_path(at->path().string());
    if (target.empty() || !is_below(roots, target)) return not_allowed("path.leads_out");
  }
  return found;
}

}  // namespace stageline
