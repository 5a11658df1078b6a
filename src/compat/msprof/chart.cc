#include "compat/msprof/chart.h"

#include "compat/msprof/problems.h"
#include "readers/ascend/find_ranks.h"

namespace stageline {

bool PpChart::any_blocks() const {
  return std::ranges::any_of(ranks, [](const PpChartRank& rank) { return rank.blocks > 0; });
}

int64_t PpChart::unlabelled() const { return sum_over<int64_t>(ranks, &PpChartRank::unlabelled); }

namespace {

Error no_databases(const std::string& folder, size_t files, const std::string& hint) {
  return make_error(ErrorCode::kNotFound,
                    "no Ascend profiler database here: looked for ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_N.db, "
                    "…/ascend_mindspore_profiler_N.db and msmonitor_*.db in " +
                        std::to_string(files) + " files",
                    hint, {folder});
}

}  // namespace

Result<RankDatabases> find_rank_databases(const std::string& folder, Diagnostics& notes) {
  TRY(source, scan_source({folder}));
  for (const std::string& path : source->unreadable) notes.add(problem::ascend_unreadable, {path});
  Result<std::vector<ascend::RankFiles>> files = ascend::find_ranks(*source, notes);
  if (!files && files.error().code == ErrorCode::kBadInput) return no_databases(folder, source->files.size(), "");
  if (!files) return std::move(files).error();
  std::map<std::string, std::string> path_in_folder;
  for (const SourceFile& file : source->files) path_in_folder[file.path] = file.rel;
  RankDatabases found;
  bool text = false;
  for (const ascend::RankFiles& rank : *files) {
    text = text || !rank.kernel_details.empty() || !rank.trace_view.empty();
    if (rank.profiler_db.empty() || rank.msprof) continue;
    found.ranks.push_back({rank.rank, rank.profiler_db, path_in_folder[rank.profiler_db], rank.folder});
    found.msmonitor = found.msmonitor || rank.msmonitor;
  }
  if (!found.ranks.empty()) return found;
  return no_databases(folder, source->files.size(), text ? "found text exports only; profile with export_type db" : "");
}

}  // namespace stageline
