#include "engine/pp_chart/rank_databases.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/number.h"
#include "base/text.h"
#include "readers/reader.h"

namespace stageline {
namespace {

constexpr std::string_view kOutputFolder = "ASCEND_PROFILER_OUTPUT";
constexpr size_t kStampDigits = 17;  // of msmonitor

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<int32_t> small_number(std::string_view text) {
  const auto value = parse_int(text);
  if (!value || *value < -1 || *value > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(*value);
}

// "ascend_pytorch_profiler_3.db" with its beginning → 3; without a number −1.
std::optional<int32_t> rank_after(std::string_view name, std::string_view begin) {
  if (!name.starts_with(begin) || !name.ends_with(".db")) return std::nullopt;
  name.remove_prefix(begin.size());
  name.remove_suffix(3);
  if (name.empty()) return -1;
  if (name[0] != '_' || !all_digits(name.substr(1))) return std::nullopt;
  return small_number(name.substr(1));
}

std::optional<int32_t> msmonitor_rank(std::string_view name) {
  if (!name.ends_with(".db")) return std::nullopt;
  const std::vector<std::string_view> words = split(name.substr(0, name.size() - 3), '_');
  if (words.size() != 4 || words[0] != "msmonitor" || !all_digits(words[1]) || words[2].size() != kStampDigits ||
      !all_digits(words[2]) || (words[3] != "-1" && !all_digits(words[3])))
    return std::nullopt;
  return small_number(words[3]);
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// The time stamp of "…_<stamp>_ascend_pt", of an msmonitor file that of its name; −1 where there is none.
int64_t stamp_of(const RankDatabase& database, bool msmonitor) {
  const std::vector<std::string_view> words = split(msmonitor ? database.path : database.folder, '_');
  const size_t from_end = msmonitor ? 2 : 3;
  if (words.size() < from_end) return -1;
  return parse_int(words[words.size() - from_end]).value_or(-1);
}

// One database a rank: of several the newest.
std::vector<RankDatabase> newest(std::vector<RankDatabase> all, bool msmonitor, Diagnostics& notes) {
  std::map<int32_t, RankDatabase> by_rank;
  for (RankDatabase& database : all) {
    const auto [at, fresh] = by_rank.try_emplace(database.rank, database);
    if (fresh) continue;
    if (stamp_of(database, msmonitor) >= stamp_of(at->second, msmonitor)) std::swap(at->second, database);
    notes.add("ascend.second_folder", Severity::kWarning,
              "a second folder of the same rank: the newest by its name's time stamp counts, this one is left out",
              {database.path});
  }
  std::vector<RankDatabase> ranks;
  for (auto& [rank, database] : by_rank) ranks.push_back(std::move(database));
  return ranks;
}

}  // namespace

Result<RankDatabases> find_rank_databases(const std::string& folder, Diagnostics& notes) {
  Result<Source> source = scan_source({folder});
  if (!source) return std::move(source).error();
  std::vector<RankDatabase> pytorch, mindspore, msmonitor;
  std::string text_export;
  for (const SourceFile& file : source->files) {
    const std::string name = file_name(file.path), inside = folder_of(file.path);
    const bool in_output = file_name(inside) == kOutputFolder;
    const auto add = [&](std::vector<RankDatabase>& to, int32_t rank, const std::string& rank_folder) {
      to.push_back({rank, file.path, file.rel, rank_folder});
    };
    if (const auto monitored = msmonitor_rank(name)) add(msmonitor, *monitored, inside);
    if (name == "kernel_details.csv" || name == "trace_view.json") text_export = file.path;
    if (!in_output && !file.given) continue;
    const std::string above = in_output ? folder_of(inside) : inside;
    if (const auto rank = rank_after(name, "ascend_pytorch_profiler")) add(pytorch, *rank, above);
    if (const auto rank = rank_after(name, "ascend_mindspore_profiler")) add(mindspore, *rank, above);
  }
  for (const std::string& path : source->unreadable)
    notes.add("ascend.unreadable", Severity::kLoss, "this may not be opened", {path});
  if (!pytorch.empty() && !mindspore.empty())
    return Error{ErrorCode::kAmbiguous,
                 "profiles of PyTorch and of MindSpore lie in one folder: " + pytorch[0].rel + ", " + mindspore[0].rel,
                 {folder},
                 "name the folder of one of them"};
  RankDatabases found;
  if (pytorch.empty()) pytorch = std::move(mindspore);
  found.msmonitor = pytorch.empty();
  found.ranks = newest(std::move(found.msmonitor ? msmonitor : pytorch), found.msmonitor, notes);
  if (!found.ranks.empty()) return found;
  return Error{ErrorCode::kNotFound,
               "no Ascend profiler database here: looked for ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_N.db, "
               "…/ascend_mindspore_profiler_N.db and msmonitor_*.db in " +
                   std::to_string(source->files.size()) + " files",
               {folder},
               text_export.empty() ? "" : "text exports are there; profile with export_type db to get the tables"};
}

}  // namespace stageline
