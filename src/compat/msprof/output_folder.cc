#include <filesystem>

#include "base/input_files.h"
#include "base/json_members.h"
#include "base/output_file.h"
#include "compat/msprof/chart.h"
#include "readers/reader.h"

namespace stageline {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxMarkBytes = size_t{64} << 20;  // a mark for 100 000 ranks has 30 MB

// Anyone can write a mark. So only names that this program would have written count, and only inside the folder.
bool is_ours(const std::string& rel) {
  const fs::path path(rel);
  if (rel.empty() || path.is_absolute() || path.lexically_normal() != path) return false;
  if (std::ranges::any_of(path, [](const fs::path& part) { return part == ".." || part == "."; })) return false;
  const std::string name = path.filename().string();
  return name.ends_with(".db") || (name.ends_with(".json") && name.starts_with("profiler_"));
}

// Returns true when no link on the way leads out of the folder.
bool lies_inside(const fs::path& folder, const std::string& rel) {
  fs::path at = folder;
  std::error_code ec;
  for (const fs::path& part : fs::path(rel)) {
    at /= part;
    const fs::file_status status = fs::symlink_status(at, ec);
    if (ec || fs::is_symlink(status) || !fs::exists(status)) return false;
  }
  return fs::is_regular_file(at, ec);
}

Result<std::vector<std::string>> files_of_mark(const fs::path& folder) {
  std::vector<std::string> out;
  const fs::path mark = folder / kPpChartMark;
  std::error_code ec;
  if (!fs::exists(mark, ec)) return out;
  const std::optional<std::string> text = own_file(mark.string(), kMaxMarkBytes);
  if (!text)
    return make_error(ErrorCode::kUsage, "cannot read what an earlier run left here", "name another folder with -o",
                      {mark.string()});
  const std::string_view files = json_member(*text, "files");
  if (!files.starts_with("[")) return out;
  for (const JsonMember& member : json_members(files))
    if (std::string rel = json_text(member.value); member.whole && is_ours(rel) && lies_inside(folder, rel))
      out.push_back(std::move(rel));
  sort_unique(out);
  return out;
}

// Returns one file that is not ours, among those next to the mark and in the folders below; "" when there is none.
std::string first_stranger(const fs::path& folder, const std::set<std::string>& ours) {
  std::error_code ec;
  for (fs::recursive_directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    if (it->is_directory(ec) && !it->is_symlink(ec)) continue;
    const std::string rel = it->path().lexically_relative(folder).string();
    if (rel != kPpChartMark && !ours.contains(rel)) return rel;
  }
  return {};
}

std::string mark_json(const PpChartOptions& options, const PpChart* chart, const std::vector<std::string>& files) {
  const bool alone = options.to == PpChartOptions::To::kTablesAlone;
  JsonWriter json;
  json.begin_object();
  if (chart) {
    json.field("schedule", chart->schedule).field("holds", alone ? "tables" : "copies");
    json.objects("ranks", chart->ranks, [&](const PpChartRank& rank) {
      json.field("rank", rank.rank).field("blocks", rank.blocks).field("unlabelled", rank.unlabelled);
      json.field("linked_operations", rank.links).field("made_operations", rank.operations);
      json.list("remarks", rank.remarks);
      if (rank.error) json.field("error", rank.error->what);
    });
  } else {
    json.field("schedule", "not finished");
  }
  json.list("files", files).end_object();
  return json.take() + "\n";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> companions_of(const RankDatabase& rank) {
  std::vector<std::pair<std::string, std::string>> out;
  const fs::path target(rank.rel), inside = fs::path(rank.path).parent_path();
  const auto add_all = [&](const fs::path& from, const fs::path& to, const auto& wanted) {
    std::error_code ec;
    for (fs::directory_iterator it(from, ec), end; !ec && it != end; it.increment(ec)) {
      const std::string name = it->path().filename().string();
      if (it->is_regular_file(ec) && wanted(name)) out.emplace_back(it->path().string(), (to / name).string());
    }
  };
  add_all(inside, target.parent_path(), [](const std::string& name) { return name == "analysis.db"; });
  if (fs::path(rank.folder) != inside)
    add_all(rank.folder, target.parent_path().parent_path(), [](const std::string& name) {
      return name.ends_with(".json") && (name.starts_with("profiler_info") || name == "profiler_metadata.json");
    });
  std::ranges::sort(out);
  return out;
}

Result<PpChartFolder> open_output_folder(const PpChartOptions& options, const std::vector<RankDatabase>& all,
                                         const std::vector<RankDatabase>& wanted) {
  std::error_code ec;
  PpChartFolder folder;
  fs::path named = fs::path(options.output).lexically_normal();
  if (!named.has_filename() && named.has_parent_path()) named = named.parent_path();  // "out/"
  folder.path = named.string();
  fs::create_directories(folder.path, ec);
  if (ec)
    return make_error(ErrorCode::kIo, "cannot make this folder: " + ec.message(), "name another one with -o",
                      {options.output});
  const fs::path root(folder.path);
  const fs::path real = fs::canonical(root, ec);
  for (const RankDatabase& rank : all) {
    const fs::path of = fs::weakly_canonical(rank.path, ec);
    if (std::mismatch(real.begin(), real.end(), of.begin(), of.end()).first == real.end())
      return make_error(ErrorCode::kUsage,
                        "copies would lie among the profile itself: one of its databases is in the folder of copies",
                        "--in-place changes it, after a backup; or name another folder with -o, outside of the profile",
                        {rank.path});
  }
  TRY(earlier, files_of_mark(root));
  folder.earlier = std::move(*earlier);
  const std::string stranger = first_stranger(root, {folder.earlier.begin(), folder.earlier.end()});
  if (!stranger.empty())
    return make_error(ErrorCode::kUsage, "this folder holds another file, not of an earlier pp-chart: " + stranger,
                      "give a folder of its own with -o, or empty this one", {folder.path});
  for (const RankDatabase& rank : wanted) {
    folder.planned.push_back(rank.rel);
    if (options.to == PpChartOptions::To::kCopies)
      for (const auto& [from, to] : companions_of(rank)) folder.planned.push_back(to);
  }
  return folder;
}

Result<int64_t> clear_output_folder(const PpChartFolder& folder) {
  const fs::path root(folder.path);
  // If the program is interrupted after this, the folder is still known as ours, with everything that may be in it.
  std::vector<std::string> may_be = folder.earlier;
  may_be.insert(may_be.end(), folder.planned.begin(), folder.planned.end());
  TRY_OK(write_file((root / kPpChartMark).string(), mark_json({}, nullptr, may_be)));
  int64_t databases = 0;
  for (const std::string& rel : folder.earlier) {
    std::error_code ec;
    const fs::path at = root / rel;
    if (!fs::remove(at, ec) && ec)
      return make_error(ErrorCode::kIo, "cannot remove it: " + ec.message(), "", {at.string()});
    databases += rel.ends_with(".db") && at.filename() != "analysis.db";
    for (fs::path up = at.parent_path(); up != root && fs::remove(up, ec) && !ec; up = up.parent_path()) {
    }  // a folder that still contains something is kept
  }
  return databases;
}

Status mark_output_folder(const PpChartFolder& folder, const PpChartOptions& options, const PpChart& chart) {
  std::vector<std::string> files;
  for (const std::string& rel : folder.planned)
    if (lies_inside(folder.path, rel)) files.push_back(rel);
  return write_file((fs::path(folder.path) / kPpChartMark).string(), mark_json(options, &chart, files));
}

}  // namespace stageline
