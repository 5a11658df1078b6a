#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/input.h"
#include "base/input_files.h"
#include "base/notes_name.h"
#include "base/remote_file.h"
#include "base/zip_archive.h"
#include "readers/foreign.h"
#include "readers/xspace_head.h"

namespace stageline {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderDepth = 2;      // every file counts down to this depth
constexpr int kMaxFolderDepth = 64;  // files with a profiler's own names count down to this depth
constexpr size_t kMaxFolders = 200'000;
// `stageline simulate` writes the true answers next to the logs under this name. They are a table of timings
// themselves, so in a folder they would be taken for input. When named alone they are read.
constexpr const char* kTruthName = "truth.csv";

// Names that profilers and frameworks give to traces. Frameworks put them deep into their own folders
// (lightning_logs/version_0, profiling/traces/iteration_10).
bool is_trace_name(std::string_view name) {
  for (const std::string_view packing : {".gz", ".zst"})
    if (name.ends_with(packing)) name.remove_suffix(packing.size());
  return name.ends_with("trace.json") || name.ends_with(".pftrace") || name.ends_with(".perfetto-trace");
}

// Returns true when a file of this name counts, `depth` folders below what was named.
bool is_wanted(const std::string& name, int depth) {
  return name != kTruthName && !name.ends_with(kNotesSuffix) &&
         (depth <= kFolderDepth || is_ascend_file(name) || is_xplane_name(name) || is_trace_name(name));
}

Error too_many_files(const std::string& folder) {
  return make_error(ErrorCode::kLimit, "more than " + std::to_string(kMaxSourceFiles) + " files below this folder",
                    "name the folder of one run", {folder});
}

// Adds a file of a folder that is none on disk, by the same rules. `rel` is its name below that folder.
Status add_below(const std::string& folder, const std::string& prefix, const std::string& rel, int64_t size_bytes,
                 Source& source) {
  const auto depth = 1 + static_cast<int>(std::ranges::count(rel, '/'));
  const bool hidden = rel.starts_with('.') || rel.find("/.") != std::string::npos;
  if (hidden || depth > kMaxFolderDepth || !is_wanted(file_name(rel), depth)) return {};
  source.files.push_back({folder + rel, prefix + rel, size_bytes, false});
  return source.files.size() > kMaxSourceFiles ? Status(too_many_files(folder)) : Status();
}

// Adds a file behind an address, or the files below a folder of S3 by the same rules as for other folders.
Status scan_remote(const std::string& path, bool several, Source& source) {
  TRY(found, find_remote(path, kMaxSourceFiles));
  if (found->size() == 1 && found->front().path == path) {
    // In "https://host/run/rank0.json.gz?signature" the part from the question mark on does not belong to the name.
    const std::string name = file_name(path.starts_with("s3:") ? path : path.substr(0, path.find_first_of("?#")));
    source.files.push_back({path, name, found->front().size_bytes, true});
    return {};
  }
  const std::string folder = path.ends_with('/') ? path : path + "/";
  const std::string prefix = several ? file_name(folder.substr(0, folder.size() - 1)) + "/" : "";
  for (const RemoteFile& file : *found)
    TRY_OK(add_below(folder, prefix, file.path.substr(folder.size()), file.size_bytes, source));
  return {};
}

// Returns true for an archive that counts as a folder, and false for archives that have a format of their own.
bool is_zip_of_files(const std::string& path) {
  return is_zip(path) && foreign_format(read_head(path, Source::kHeadBytes), path) == "foreign.zip";
}

Status scan_zip(const std::string& path, bool several, Source& source) {
  TRY(members, list_zip(path));
  for (const ZipMember& member : *members)
    TRY_OK(add_below(path + "/", several ? file_name(path) + "/" : "", member.name, member.text_bytes, source));
  return {};
}

void pass(Source& source, const fs::path& path, const std::string& rel, const char* why, bool leads_nowhere = false) {
  ++source.passed_count;
  if (source.passed.size() < Source::kMaxPassed) source.passed.push_back({path.string(), rel, why, leads_nowhere});
}

using SeenFolders = std::set<std::pair<dev_t, ino_t>>;  // folders listed so far, since links may lead back into them

Status scan_folder(const fs::path& folder, const std::string& rel, int depth, Source& source, SeenFolders& seen) {
  std::vector<SourceFile>& files = source.files;
  struct stat here;
  if (depth > 1 && stat((folder / kPpChartMark).c_str(), &here) == 0 && S_ISREG(here.st_mode)) {
    source.copies.push_back(folder.string());
    return {};
  }
  if (stat(folder.c_str(), &here) == 0 && !seen.emplace(here.st_dev, here.st_ino).second) {
    if (depth > 1) pass(source, folder, rel.substr(0, rel.size() - 1), "left.same_folder");
    return {};
  }
  if (seen.size() > kMaxFolders)
    return make_error(ErrorCode::kLimit, "more than " + std::to_string(kMaxFolders) + " folders below this one",
                      "name the folder of one run", {source.roots.empty() ? folder.string() : source.roots[0]});
  std::error_code ec;
  fs::directory_iterator it(folder, ec);
  if (ec && !rel.empty()) {
    source.unreadable.push_back(folder.string());
    return {};
  }
  if (ec) return make_error(ErrorCode::kIo, "cannot list this folder: " + ec.message(), "", {folder.string()});
  for (const fs::directory_entry& entry : it) {
    const std::string name = entry.path().filename().string();
    if (name.empty() || name[0] == '.') continue;
    std::error_code ignored;
    if (entry.is_directory(ignored)) {
      if (depth == kMaxFolderDepth) pass(source, entry.path(), rel + name, "left.deep_folder");
      if (depth < kMaxFolderDepth) TRY_OK(scan_folder(entry.path(), rel + name + "/", depth + 1, source, seen));
    } else if (entry.is_regular_file(ignored)) {
      note_input_file(entry.path().string());
      if (!is_wanted(name, depth)) {
        if (is_wanted(name, 0)) pass(source, entry.path(), rel + name, "left.deep_file");
        continue;
      }
      const auto size = entry.file_size(ignored);
      files.push_back({entry.path().string(), rel + name, ignored ? 0 : static_cast<int64_t>(size), false});
      if (files.size() > kMaxSourceFiles) return too_many_files(folder.string());
    } else if (entry.is_symlink(ignored) && !entry.exists(ignored)) {
      pass(source, entry.path(), rel + name, "left.dead_link", true);
    } else {
      pass(source, entry.path(), rel + name, "left.special");
    }
  }
  return {};
}

// Drops second names: links, and a file named in addition to its folder, would count the same work twice. Also notes
// which files may not be opened.
void drop_repeats(Source& source) {
  std::set<std::pair<dev_t, ino_t>> seen;
  std::erase_if(source.files, [&](const SourceFile& file) {
    struct stat st;
    if (file.path == "-" || stat(file.path.c_str(), &st) != 0) return false;
    if (access(file.path.c_str(), R_OK) != 0) source.unreadable.push_back(file.path);
    if (!S_ISREG(st.st_mode) || seen.emplace(st.st_dev, st.st_ino).second) return false;
    source.repeated.push_back(file.path);
    return true;
  });
}

// Expands patterns that the shell left alone (because they were quoted, or the list was too long), as the shell would.
// A file that has such a name stands for itself.
Result<std::vector<std::string>> expand_patterns(const std::vector<std::string>& given) {
  std::vector<std::string> paths;
  for (const std::string& path : given) {
    struct stat st;
    if (is_remote(path) || path.find_first_of("*?[") == std::string::npos || stat(path.c_str(), &st) == 0) {
      paths.push_back(path);
      continue;
    }
    glob_t found{};
    const int rc = glob(path.c_str(), 0, nullptr, &found);
    for (size_t i = 0; rc == 0 && i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
    globfree(&found);
    if (rc != 0) return make_error(ErrorCode::kNotFound, "no file matches this pattern", "", {path});
  }
  return paths;
}

// Adds what one path names. `several`: it is one of several roots.
Status scan_one(const std::string& path, bool several, Source& source, SeenFolders& seen) {
  struct stat st;
  if (path == "-") {
    source.files.push_back({path, "-", 0, true});
    note_input_file(path);
    return {};
  }
  if (is_remote(path)) return scan_remote(path, several, source);
  if (stat(path.c_str(), &st) != 0) return make_error(ErrorCode::kNotFound, "no such file or folder", "", {path});
  // With several roots, the names of the folders distinguish machines.
  if (S_ISDIR(st.st_mode)) return scan_folder(path, several ? file_name(path) + "/" : "", 1, source, seen);
  if (S_ISREG(st.st_mode) && is_zip_of_files(path)) {
    note_input_file(path);
    if (seen.emplace(st.st_dev, st.st_ino).second) return scan_zip(path, several, source);
    source.repeated.push_back(path);
    return {};
  }
  // A file named alone keeps its folder's name when that is a machine's: machine1/workerlog.0.
  const std::string folder = file_name(fs::path(path).parent_path().string());
  const std::string rel = folder.starts_with("machine") ? folder + "/" + file_name(path) : file_name(path);
  source.files.push_back({path, rel, st.st_size, true});
  note_input_database(path);
  return {};
}

}  // namespace

bool is_ascend_file(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "analysis.db",        "profiler_metadata.json",    "kernel_details.csv", "trace_view.json",
      "communication.json", "communication_matrix.json", "step_trace_time.csv"};
  static constexpr std::string_view kBegins[] = {"ascend_pytorch_profiler", "ascend_mindspore_profiler",
                                                 "profiler_info", "msprof_", "msmonitor_"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kBegins), std::end(kBegins), [&](std::string_view b) { return name.starts_with(b); });
}

Result<Source> scan_source(const std::vector<std::string>& given) {
  TRY(expanded, expand_patterns(given));
  std::vector<std::string>& paths = *expanded;
  for (std::string& path : paths) path = shown_address(path);
  Source source;
  source.roots = paths;
  SeenFolders seen;
  for (const std::string& path : paths) TRY_OK(scan_one(path, paths.size() > 1, source, seen));
  // Files are sorted first. Among two names of one file the plain one then stays, in any order of the folder ("a.db",
  // and not the "a.db.stageline-backup" that a killed pp-chart --in-place left).
  sort_stably(source.files, [](const SourceFile& a, const SourceFile& b) { return natural_less(a.rel, b.rel); });
  drop_repeats(source);
  sort_stably(source.passed,
              [](const Source::Passed& a, const Source::Passed& b) { return natural_less(a.rel, b.rel); });
  std::ranges::sort(source.copies);
  return source;
}

}  // namespace stageline
