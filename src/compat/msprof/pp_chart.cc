#include <filesystem>

#include "compat/msprof/cell_ranks.h"
#include "compat/msprof/msprof_rows.h"
#include "compat/msprof/problems.h"

namespace stageline {
namespace {

namespace fs = std::filesystem;

// Writes the tables of a rank to where they go, and returns the path.
Result<std::string> write_rank(const PpChartOptions& options, const RankDatabase& rank, const RankTables& tables) {
  if (options.to == PpChartOptions::To::kInPlace) {
    TRY_OK(write_in_place(rank.path, tables));
    return rank.path;
  }
  const fs::path target = fs::path(options.output) / rank.rel;
  std::error_code ec;
  fs::create_directories(target.parent_path(), ec);
  if (ec)
    return make_error(ErrorCode::kIo, "cannot make this folder: " + ec.message(), "", {target.parent_path().string()});
  const bool alone = options.to == PpChartOptions::To::kTablesAlone;
  const Status done =
      alone ? write_tables_alone(target.string(), tables) : write_copy(rank.path, target.string(), tables);
  if (!done) return done.error();
  if (!alone)
    for (const auto& [from, to] : companions_of(rank))
      TRY_OK(copy_file(from, (fs::path(options.output) / to).string()));
  return target.string();
}

void finish_rank(const PpChartOptions& options, const RankDatabase& database, const RankTables& tables,
                 PpChartRank& rank) {
  rank.blocks = tables.blocks.rows.size();
  rank.operations = tables.write_ops ? std::ssize(tables.ops) : 0;
  // A database of tables alone has no COMMUNICATION_OP to put links into, unless that was made.
  const bool to_link = tables.write_ops || options.to != PpChartOptions::To::kTablesAlone;
  rank.links = to_link ? std::ssize(tables.links) : 0;
  if (tables.empty()) return;
  Result<std::string> written = write_rank(options, database, tables);
  if (written) rank.written = std::move(*written);
  else rank.error = std::move(written).error();
}

HostWindow host_window(const SqliteDb& db, const std::optional<int64_t>& step, PpChartRank& rank) {
  if (!step) return HostWindow{0, INT64_MAX};
  if (const auto window = window_of_step(db, *step)) return *window;
  std::set<int64_t> there;
  SqliteRows rows = rows_of(db, "STEP_TIME", {"id"});
  while (rows.next() && there.size() < kMaxStepsListed) there.insert(rows.integer(0));
  rank.remarks.push_back("there is no step " + std::to_string(*step) + " in STEP_TIME" +
                         (there.empty() ? "" : ", which has " + step_list(there)));
  return HostWindow{0, INT64_MAX};
}

// Labels one rank as msprof-analyze does.
Result<MsprofRank> msprof_labels(const PpChartOptions& options, const RankDatabase& database, const MsprofPlan& plan,
                                 PpChartRank& rank, Diagnostics& notes) {
  TRY(db, SqliteDb::open_read(database.path, notes));
  return msprof_rank(*db, database.rank, plan, host_window(*db, options.step, rank));
}

// Finds out whether any rank has a block, before anything is removed. As a rule the first rank has one, so this reads
// only one rank twice.
bool msprof_any_blocks(const PpChartOptions& options, const std::vector<RankDatabase>& ranks, const MsprofPlan& plan) {
  return std::ranges::any_of(ranks, [&](const RankDatabase& database) {
    PpChartRank ignored;
    Diagnostics notes;
    const Result<MsprofRank> rows = msprof_labels(options, database, plan, ignored, notes);
    return rows && rows->tables.write_blocks;
  });
}

// Processes one rank as msprof-analyze does: it is read, labelled and written before the next.
void msprof_one(const PpChartOptions& options, const RankDatabase& database, const MsprofPlan& plan, bool write,
                PpChartRank& rank, Diagnostics& notes) {
  Result<MsprofRank> rows = msprof_labels(options, database, plan, rank, notes);
  if (!rows) {
    rank.error = std::move(rows).error();
    return;
  }
  rank.unlabelled = rows->unlabelled;
  rank.remarks.insert(rank.remarks.end(), rows->remarks.begin(), rows->remarks.end());
  if (write) finish_rank(options, database, rows->tables, rank);
}

Result<std::vector<RankDatabase>> wanted_ranks(const RankDatabases& found, const PpChartOptions& options,
                                               Diagnostics& notes) {
  if (!options.ranks) return found.ranks;
  std::vector<RankDatabase> kept;
  for (const int32_t rank : *options.ranks) {
    const auto at = std::ranges::find_if(found.ranks, [&](const RankDatabase& d) { return d.rank == rank; });
    if (at != found.ranks.end()) kept.push_back(*at);
    else notes.add(problem::ascend_no_such_rank, Args().set("rank", std::to_string(rank)));
  }
  if (kept.empty())
    return make_error(ErrorCode::kUsage,
                      "--rank-list leaves nothing: there are ranks " + std::to_string(found.ranks.front().rank) +
                          " to " + std::to_string(found.ranks.back().rank),
                      "", {options.folder});
  return kept;
}

Status clear_into(const PpChartFolder& folder, PpChart& chart) {
  TRY_OK(take(clear_output_folder(folder), chart.removed));
  return {};
}

}  // namespace

Result<PpChart> write_pp_chart(const PpChartOptions& options) {
  PpChart chart;
  Diagnostics finding;
  TRY(found, find_rank_databases(options.folder, finding));
  TRY(ranks, wanted_ranks(*found, options, chart.notes));
  const bool copies = options.to != PpChartOptions::To::kInPlace;
  PpChartFolder folder;
  if (copies) TRY_OK(take(open_output_folder(options, found->ranks, *ranks), folder));
  chart.ranks.resize(ranks->size());
  for (size_t i = 0; i < ranks->size(); ++i) chart.ranks[i].rank = (*ranks)[i].rank;
  std::vector<Diagnostics> notes(ranks->size());

  if (options.as_msprof) {
    chart.notes.merge(finding);
    MsprofPlan plan;
    if (Result<SqliteDb> first = SqliteDb::open_read(found->ranks.front().path, chart.notes)) {
      plan = msprof_plan(*first, found->msmonitor,
                         {options.open.layout.pp, options.open.layout.tp, options.open.layout.dp});
      if (!plan.remark.empty())
        chart.notes.add(problem::pp_chart_plan, Args().set("remark", plan.remark), {first->path()});
    }
    chart.schedule = plan.dualpipev ? "dualpipev" : "forward and backward";
    const bool any = msprof_any_blocks(options, *ranks, plan);
    if (copies && any) TRY_OK(clear_into(folder, chart));
    parallel_for(ranks->size(),
                 [&](size_t i) { msprof_one(options, (*ranks)[i], plan, any, chart.ranks[i], notes[i]); });
  } else {
    CellRanks cells = label_ranks(options, *ranks, finding, notes, chart);
    const bool any = std::ranges::any_of(cells, [](const RankTables& tables) { return tables.write_blocks; });
    if (copies && any) TRY_OK(clear_into(folder, chart));
    parallel_for(ranks->size(), [&](size_t i) {
      if (any && !chart.ranks[i].error) finish_rank(options, (*ranks)[i], cells[i], chart.ranks[i]);
      cells[i] = RankTables();
    });
  }
  for (const Diagnostics& of_rank : notes) chart.notes.merge(of_rank);
  const bool any = std::ranges::any_of(chart.ranks, [](const auto& r) { return !r.written.empty(); });
  if (copies && any) TRY_OK(mark_output_folder(folder, options, chart));
  return chart;
}

}  // namespace stageline
