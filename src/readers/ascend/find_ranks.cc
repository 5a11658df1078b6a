#include "readers/ascend/find_ranks.h"

#include <filesystem>

#include "base/input.h"
#include "base/json_members.h"
#include "base/sqlite_db.h"
#include "readers/ascend/problems.h"

namespace stageline::ascend {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxJsonBytes = size_t{1} << 22;

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns 3 for "…_3.db" with the prefix "…"; nullopt when the name does not have this form, −1 when it has no number.
std::optional<int32_t> numbered(std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() < prefix.size() + suffix.size())
    return std::nullopt;
  name = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  if (name.empty()) return -1;
  if (name[0] != '_' || !all_digits(name.substr(1))) return std::nullopt;
  const auto rank = parse_int(name.substr(1));
  return rank && *rank <= INT32_MAX ? std::optional(static_cast<int32_t>(*rank)) : std::nullopt;
}

struct Candidate {
  RankFiles files;
  std::string place;  // absolute path, used for the order and to find files inside other folders
};

// Returns the third part from the end between underscores: the timestamp of node0_1234_20250521091718000_ascend_pt.
std::string stamp_of(const std::string& folder) {
  const std::string name = file_name(folder);
  const std::vector<std::string_view> parts = split(name, '_');
  if (parts.size() < 3 || !all_digits(parts[parts.size() - 3])) return {};
  return std::string(parts[parts.size() - 3]);
}

// Returns the rank in "rank_3_ascend_pt" or "rank3_ascend_pt".
int32_t rank_in_folder_name(const std::string& folder) {
  std::string_view name = folder;
  name = name.substr(name.find_last_of('/') + 1);
  if (!name.starts_with("rank")) return -1;
  name.remove_prefix(name.starts_with("rank_") ? 5 : 4);
  const size_t end = std::min(name.find_first_not_of("0123456789"), name.size());
  const auto rank = parse_int(name.substr(0, end));
  return end > 0 && rank && *rank <= INT32_MAX ? static_cast<int32_t>(*rank) : -1;
}

// Puts files into the rank folders that they belong to.
class Folders {
 public:
  void add(const SourceFile& file) {
    const fs::path path = fs::absolute(file.path).lexically_normal();
    const std::string name = path.filename().string();
    fs::path folder = path.parent_path();
    if (folder.filename() == "ASCEND_PROFILER_OUTPUT") folder = folder.parent_path();
    if (const auto rank = numbered(name, "ascend_pytorch_profiler", ".db")) return add_db(file, folder, *rank, false);
    if (const auto rank = numbered(name, "ascend_mindspore_profiler", ".db")) return add_db(file, folder, *rank, true);
    if (name.starts_with("msmonitor_") && name.ends_with(".db")) return add_monitor(file, path, name);
    if (name.starts_with("msprof_") && name.ends_with(".db") && all_digits(name.substr(7, name.size() - 10)))
      return add_msprof(file, folder, name);
    add_other(file, folder, name);
  }
  // Adds a file that has a name of its own: a database, or op_summary of msprof.
  void add_unnamed(const SourceFile& file, std::string RankFiles::* member) {
    const fs::path path = fs::absolute(file.path).lexically_normal();
    Candidate& c = candidates_[path.string()];
    c.place = path.string();
    c.files.folder = path.parent_path().string();
    c.files.*member = file.path;
  }

  std::vector<Candidate> take() {
    // PROF_ folders inside a framework's own folder contain the same measurement again.
    std::set<std::string> again;
    for (const auto& [place, c] : candidates_)
      if (c.files.msprof && inside_another(c)) again.insert(place);
    std::vector<Candidate> out;
    for (auto& [place, c] : candidates_)
      if (again.count(place) == 0) out.push_back(std::move(c));
    return out;
  }

 private:
  Candidate& at(const fs::path& folder) {
    Candidate& c = candidates_[folder.string()];
    c.place = folder.string();
    c.files.folder = folder.string();
    c.files.stamp = stamp_of(c.files.folder);
    return c;
  }
  void add_db(const SourceFile& file, const fs::path& folder, int32_t rank, bool mindspore) {
    Candidate& c = at(folder);
    if (!c.files.profiler_db.empty()) {  // a second database in one folder is a rank of its own
      if (c.files.rank == rank) return;
      Candidate& other = at(folder / file_name(file.path));
      other.files.folder = folder.string();
      other.files.stamp = c.files.stamp;
      other.files.profiler_db = file.path;
      other.files.rank = rank;
      other.files.mindspore = mindspore;
      return;
    }
    c.files.profiler_db = file.path;
    c.files.mindspore = mindspore;
    c.files.rank = rank;
  }
  void add_monitor(const SourceFile& file, const fs::path& path, const std::string& name) {
    const std::vector<std::string_view> parts = split(std::string_view(name).substr(0, name.size() - 3), '_');
    if (parts.size() != 4 || !all_digits(parts[1]) || parts[2].size() != 17 || !all_digits(parts[2])) return;
    Candidate& c = candidates_[path.string()];
    c.place = path.string();
    c.files.folder = path.parent_path().string();
    c.files.profiler_db = file.path;
    c.files.stamp = std::string(parts[2]);
    c.files.msmonitor = true;
    const auto rank = all_digits(parts[3]) ? parse_int(parts[3]) : std::nullopt;
    c.files.rank = rank && *rank <= INT32_MAX ? static_cast<int32_t>(*rank) : -1;
  }
  void add_msprof(const SourceFile& file, const fs::path& folder, const std::string& name) {
    Candidate& c = at(folder);
    if (!c.files.profiler_db.empty() && !c.files.msprof) return;
    const std::string stamp = name.substr(7, name.size() - 10);
    if (!c.files.profiler_db.empty() && stamp < c.files.stamp) return;
    c.files.profiler_db = file.path;
    c.files.msprof = true;
    c.files.stamp = stamp;
  }
  void add_other(const SourceFile& file, const fs::path& folder, const std::string& name) {
    const std::pair<const char*, std::string RankFiles::*> kNames[] = {
        {"analysis.db", &RankFiles::analysis_db},
        {"profiler_metadata.json", &RankFiles::profiler_metadata},
        {"kernel_details.csv", &RankFiles::kernel_details},
        {"trace_view.json", &RankFiles::trace_view},
        {"communication.json", &RankFiles::communication},
        {"communication_matrix.json", &RankFiles::communication_matrix},
        {"step_trace_time.csv", &RankFiles::step_trace_time}};
    for (const auto& [known, member] : kNames)
      if (name == known) {
        at(folder).files.*member = file.path;
        return;
      }
    if (numbered(name, "profiler_info", ".json")) at(folder).files.profiler_info = file.path;
  }
  bool inside_another(const Candidate& candidate) const {
    for (fs::path up = fs::path(candidate.place).parent_path(); up.has_relative_path(); up = up.parent_path()) {
      const auto it = candidates_.find(up.string());
      if (it != candidates_.end() && !it->second.files.profiler_db.empty() && !it->second.files.msprof) return true;
    }
    return false;
  }

  std::map<std::string, Candidate> candidates_;
};

// Returns device_N/info.json.N of a PROF_ folder, or of those that a rank's folder holds.
std::set<std::string> device_infos(const std::string& folder) {
  std::error_code ignored;
  std::set<std::string> found;
  for (const fs::directory_entry& inner : fs::directory_iterator(folder, ignored)) {
    const std::string name = inner.path().filename().string();
    if (!inner.is_directory(ignored)) continue;
    if (name.starts_with("PROF_")) found.merge(device_infos(inner.path().string()));
    if (!name.starts_with("device_")) continue;
    for (const fs::directory_entry& file : fs::directory_iterator(inner.path(), ignored))
      if (file.path().filename().string().starts_with("info.json.")) found.insert(file.path().string());
  }
  return found;
}

// Finds files of the rank that lie above what the user named, and below it.
void find_siblings(RankFiles& files) {
  std::error_code ignored;
  if (const auto infos = device_infos(files.folder); infos.size() == 1) files.device_info = *infos.begin();
  if (files.profiler_metadata.empty())
    if (const fs::path path = fs::path(files.folder) / "profiler_metadata.json"; fs::is_regular_file(path, ignored))
      files.profiler_metadata = path.string();
  if (!files.profiler_info.empty()) return;
  const std::string number = files.rank >= 0 ? "_" + std::to_string(files.rank) : "";
  for (const std::string& name : {"profiler_info" + number + ".json", std::string("profiler_info.json")})
    if (const fs::path path = fs::path(files.folder) / name; fs::is_regular_file(path, ignored)) {
      files.profiler_info = path.string();
      return;
    }
}

int32_t json_rank(std::string_view value) {
  const auto rank = json_integer(value);
  return rank && *rank >= 0 && *rank <= INT32_MAX ? static_cast<int32_t>(*rank) : -1;
}

// Returns the rank by PROF_…/device_0/info.json.0.
int32_t rank_of_prof(const std::string& folder) {
  for (const std::string& path : device_infos(folder))
    if (const int32_t rank = json_rank(json_member(read_head(path, kMaxJsonBytes), "rank_id")); rank >= 0) return rank;
  return -1;
}

int32_t rank_of_database(const std::string& path) {
  Diagnostics ignored;
  Result<SqliteDb> db = SqliteDb::open_read(path, ignored);
  if (!db) return -1;
  int32_t found = -1;
  SqliteRows rows = rows_of(*db, "RANK_DEVICE_MAP", {"rankId"});
  while (rows.next()) {
    const int64_t rank = rows.integer_or(0, -1);
    if (rank < 0 || rank > INT32_MAX) continue;
    if (found >= 0 && found != rank) return -1;  // several ranks in one folder: the file belongs to none of them
    found = static_cast<int32_t>(rank);
  }
  return found;
}

// If the names of a folder's files have no number, the rank is looked for elsewhere.
int32_t rank_of(const RankFiles& files) {
  if (files.rank >= 0) return files.rank;
  if (const auto rank = numbered(file_name(files.profiler_info), "profiler_info", ".json"); rank && *rank >= 0)
    return *rank;
  if (!files.profiler_info.empty())
    if (const int32_t rank = json_rank(json_member(read_head(files.profiler_info, kMaxJsonBytes), "rank_id"));
        rank >= 0)
      return rank;
  if (!files.profiler_db.empty())
    if (const int32_t rank = rank_of_database(files.profiler_db); rank >= 0) return rank;
  if (files.msprof) return rank_of_prof(files.folder);
  if (!files.profiler_metadata.empty()) {
    const std::string text = read_head(files.profiler_metadata, kMaxJsonBytes);
    if (const int32_t rank = json_rank(json_member(json_member(text, "distributed_args"), "rank")); rank >= 0)
      return rank;
  }
  return rank_in_folder_name(files.folder);
}

bool holds_anything(const RankFiles& f) {
  return !f.profiler_db.empty() || !f.kernel_details.empty() || !f.trace_view.empty() || !f.communication.empty() ||
         !f.communication_matrix.empty() || !f.step_trace_time.empty() || !f.analysis_db.empty();
}

// Returns true when a has the later timestamp, else the later name; a database has precedence over none.
bool newer(const RankFiles& a, const RankFiles& b) {
  if (a.profiler_db.empty() != b.profiler_db.empty()) return b.profiler_db.empty();
  if (a.stamp != b.stamp) return natural_less(b.stamp, a.stamp);
  return natural_less(b.profiler_db + b.folder, a.profiler_db + a.folder);
}

}  // namespace

bool is_profiler_db(std::string_view name) {
  if (numbered(name, "ascend_pytorch_profiler", ".db") || numbered(name, "ascend_mindspore_profiler", ".db"))
    return true;
  return name.ends_with(".db") && (name.starts_with("msprof_") || name.starts_with("msmonitor_"));
}

bool is_text_export(const Source& source, size_t file) {
  struct Export {
    std::string_view name, word;  // the name, and a word near its beginning
  };
  static constexpr Export kExports[] = {
#include "readers/ascend/export_files.def"
  };
  const std::string& path = source.files[file].path;
  const std::string name = file_name(path);
  // kernel_details.csv is made from op_summary of msprof. A folder has both, so op_summary counts only if it is named.
  if (source.files[file].given && name.starts_with("op_summary") && name.ends_with(".csv"))
    return source.head(file).find("Task Start Time(us)") != std::string_view::npos;
  for (const Export& known : kExports)
    if (name == known.name && (path.find("ASCEND_PROFILER_OUTPUT") != std::string::npos ||
                               source.head(file).find(known.word) != std::string_view::npos))
      return true;
  return false;
}

Result<std::vector<RankFiles>> find_ranks(const Source& source, Diagnostics& notes) {
  Folders folders;
  for (size_t i = 0; i < source.files.size(); ++i) {
    const SourceFile& file = source.files[i];
    const bool named = is_ascend_file(file_name(file.path));
    if (named) folders.add(file);
    if (!named && file.given && source.head(i).starts_with(std::string_view("SQLite format 3\0", 16)))
      folders.add_unnamed(file, &RankFiles::profiler_db);
    if (!named && is_text_export(source, i)) folders.add_unnamed(file, &RankFiles::kernel_details);
  }
  std::vector<RankFiles> found;
  for (Candidate& c : folders.take()) {
    if (!holds_anything(c.files)) continue;
    find_siblings(c.files);
    c.files.rank = rank_of(c.files);
    found.push_back(std::move(c.files));
  }
  if (found.empty()) return no_such_input("ascend.nothing", source);
  const auto is_pytorch = [](const RankFiles& f) { return !f.profiler_db.empty() && !f.mindspore && !f.msprof; };
  const auto pytorch = std::ranges::find_if(found, is_pytorch);
  const auto mindspore = std::ranges::find_if(found, [](const RankFiles& f) { return f.mindspore; });
  if (pytorch != found.end() && mindspore != found.end())
    return make_error(ErrorCode::kAmbiguous, "profiles of PyTorch and of MindSpore lie together here",
                      "name the folder of one of the two, such as " + pytorch->folder, {mindspore->profiler_db});
  int32_t highest = max_over<int32_t>(found, &RankFiles::rank, -1);
  for (RankFiles& files : found) {
    if (files.rank >= 0) continue;
    if (highest >= INT32_MAX - 1) return no_such_input("ascend.nothing", source);
    files.rank = ++highest;
    if (found.size() > 1) notes.add(problem::ascend_rank_unknown, {files.folder});
  }
  std::map<int32_t, RankFiles> by_rank;
  for (RankFiles& files : found) {
    const auto [it, added] = by_rank.try_emplace(files.rank, files);
    if (added) continue;
    if (newer(files, it->second)) std::swap(files, it->second);
    const auto place = [](const RankFiles& f) { return f.profiler_db.empty() ? f.folder : f.profiler_db; };
    // Two folders that only differ in name are both named: a user could not know which of them counts.
    const bool same_stamp =
        files.stamp == it->second.stamp && files.profiler_db.empty() == it->second.profiler_db.empty();
    if (same_stamp) notes.add(problem::ascend_same_stamp, Args().set("source", place(it->second)), {place(files)});
    else notes.add(problem::ascend_older_profile, {place(files)});
  }
  return mapped<RankFiles>(by_rank, [&](auto& entry) { return std::move(entry.second); });
}

}  // namespace stageline::ascend
