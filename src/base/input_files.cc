#include "base/input_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <mutex>

#include "base/error_words.h"

namespace stageline {
namespace {

using FileId = std::pair<dev_t, ino_t>;
struct Known {
  std::mutex mutex;
  std::map<FileId, std::string> files;  // with the name under which each file was first seen
  std::set<std::string> read;           // names of files
  std::map<std::string, std::string> failures;
};
Known& known() {
  static Known* const all = new Known();  // it must outlive every thread that may still read
  return *all;
}

thread_local bool t_unnoted = false;
constexpr std::string_view kPages[] = {".html", ".htm", ".svg", ".png", ".pdf"};

// When a file is removed, its inode number may be given to another file, which the noted name does not lead to.
bool leads_elsewhere(const std::string& name, const FileId& id) {
  struct stat now;
  return name != "-" && (stat(name.c_str(), &now) != 0 || FileId(now.st_dev, now.st_ino) != id);
}

void remember(const struct stat& st, const std::string& path) {
  if (t_unnoted) return;
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  const auto [at, is_new] = all.files.try_emplace({st.st_dev, st.st_ino}, path);
  if (!is_new && at->second != path && leads_elsewhere(at->second, at->first)) at->second = path;
}

// Returns the name of a noted file; "" when it is not noted, or when its number belongs to a file without a second name
// that was not noted.
std::string known_as(const struct stat& st) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  const auto at = all.files.find({st.st_dev, st.st_ino});
  if (at == all.files.end()) return {};
  if (st.st_nlink > 1 || !leads_elsewhere(at->second, at->first)) return at->second;
  all.files.erase(at);
  return {};
}

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

int open_input_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) note_input_descriptor(fd, path);
  return fd;
}

std::optional<std::string> own_file(const std::string& path, size_t at_most) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::string out;
  char buffer[size_t{1} << 16];
  ssize_t n = 0;
  while ((n = ::read(fd, buffer, std::min(sizeof buffer, at_most + 1 - out.size()))) > 0 || (n < 0 && errno == EINTR))
    if (n > 0) out.append(buffer, n);
  ::close(fd);
  return n < 0 || out.size() > at_most ? std::nullopt : std::optional(std::move(out));
}

void note_input_descriptor(int fd, const std::string& path) {
  struct stat st;
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) remember(st, path);
}

void note_input_file(const std::string& path) {
  struct stat st;
  if (path == "-") return note_input_descriptor(0, path);
  if (stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode)) remember(st, path);
}

void note_input_database(const std::string& path) {
  note_input_file(path);
  for (const char* suffix : {"-wal", "-shm", "-journal"}) note_input_file(path + suffix);
}

void note_content_read(const std::string& path) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.read.insert(path);
}

bool was_read(const std::string& path) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  return all.read.contains(path);
}

void note_input_failure(const std::string& path, const std::string& what) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.failures.try_emplace(path, what);
}

std::string input_failure(const std::string& path) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  return value_at(all.failures, path);
}

std::string input_file_of(const std::string& target, const struct stat& st) {
  if (!S_ISREG(st.st_mode)) return {};
  std::string name = known_as(st);
  return name.empty() || (target != "-" && holds_page_or_picture(target)) ? std::string() : name;
}

UnnotedReads::UnnotedReads() { t_unnoted = true; }
UnnotedReads::~UnnotedReads() { t_unnoted = false; }

bool is_page_or_picture(std::string_view head) {
  while (!head.empty() && (head.front() == ' ' || head.front() == '\n' || head.front() == '\r')) head.remove_prefix(1);
  for (const std::string_view begin : {"<!doctype html", "<!DOCTYPE html", "<html", "<svg", "%PDF-", "\x89PNG\r\n"})
    if (head.starts_with(begin)) return true;
  return head.starts_with("<?xml") && head.find("<svg") != std::string_view::npos;
}

bool holds_page_or_picture(const std::string& path) {
  // A log whose first bytes were lost may begin like a page, but no page is called workerlog.0.
  const std::string kind = to_lower(std::filesystem::path(path).extension().string());
  if (std::ranges::find(kPages, kind) == std::end(kPages)) return false;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  char head[256];
  const ssize_t got = ::read(fd, head, sizeof head);
  ::close(fd);
  return got > 0 && is_page_or_picture({head, static_cast<size_t>(got)});
}

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
