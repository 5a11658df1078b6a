// `stageline pp-chart`: what is asked, where it reads and writes, and its result for every rank.
#pragma once

#include "engine/engine.h"

namespace stageline {

struct PpChartOptions {
  std::string folder;
  enum class To : uint8_t { kCopies, kTablesAlone, kInPlace } to = To::kCopies;
  std::string output;  // the folder for copies
  bool as_msprof = false;
  std::optional<std::vector<int32_t>> ranks;  // all ranks when absent
  std::optional<int64_t> step;
  // Sizes given by hand; 0 takes the profile's. With as_msprof tp, pp and dp are used when all three are given.
  int32_t micro_batches = 0;
  std::string schedule;  // "1f1b", "dualpipev", …; "" takes the profile's
  OpenOptions open;      // for our own labels: layout, rules for cells
  Progress* progress = nullptr;
};

struct PpChartRank {
  int32_t rank = 0;
  std::string written;  // path of the database; "" when nothing was written
  int64_t blocks = 0, unlabelled = 0;
  int64_t operations = 0, links = 0;  // rows made in COMMUNICATION_OP, and rows of it that have a link
  std::vector<std::string> remarks;   // what first differs from the expected schedule, and what is missing
  std::optional<Error> error;
};

struct PpChart {
  std::vector<PpChartRank> ranks;
  std::string schedule;  // what the labels follow: "dualpipev", "forward and backward"
  int64_t removed = 0;   // databases that an earlier run had left in the folder of copies
  std::string steps;     // when a step was asked for that does not exist, the steps that do: "10, 11"
  Diagnostics notes;
  bool any_blocks() const;
  int64_t unlabelled() const;
};

// Finds which file has which rank of an Ascend cluster's profile.
struct RankDatabase {
  int32_t rank = -1;   // −1 when the file's name has no number
  std::string path;    // the path with which it can be opened
  std::string rel;     // path below the folder that the user named
  std::string folder;  // the rank's folder, with profiler_info*.json; for msmonitor the folder of the file itself
};

struct RankDatabases {
  std::vector<RankDatabase> ranks;  // ordered by rank, each rank once
  bool msmonitor = false;           // the files are msmonitor's, which have no folders for ranks
};

// Takes ascend_pytorch_profiler[_N].db or ascend_mindspore_profiler[_N].db in folders ASCEND_PROFILER_OUTPUT at any
// depth, else msmonitor_<pid>_<17 digits>_<rank>.db. If a rank has two folders, the newest counts, by the timestamp in
// its name, and `notes` reports it (source: msprof-analyze 26.2, described in docs/reference/pp-chart.md). Errors:
// kNotFound when there is none, with what was found instead; kAmbiguous for profiles of both PyTorch and MindSpore.
Result<RankDatabases> find_rank_databases(const std::string& folder, Diagnostics& notes);

// The folder for copies of `stageline pp-chart`. It is never the folder of the data, and never shared by two runs.
//
// The file stageline_pp_chart.json (kPpChartMark) marks a folder as ours and lists our files in it. So what an earlier
// run left, and nothing else, can be removed before the next one.
struct PpChartFolder {
  std::string path;
  std::vector<std::string> earlier;  // below path: files of an earlier run that are still there
  std::vector<std::string> planned;  // below path: the databases of this run, and the copies next to them
};

// Returns the files that Insight and other readers look for next to the database (analysis.db, profiler_info*.json,
// profiler_metadata.json). Each pair is the place of a file, and its destination below the folder for copies.
std::vector<std::pair<std::string, std::string>> companions_of(const RankDatabase& rank);

// Makes the folder and looks at what is in it, without changing that. `all` are the databases that were found, `wanted`
// those to be copied. Errors: kUsage when the folder is that of the profile or contains files that are not ours; kIo.
Result<PpChartFolder> open_output_folder(const PpChartOptions& options, const std::vector<RankDatabase>& all,
                                         const std::vector<RankDatabase>& wanted);

// To be called before the first file is written: writes into the mark what is about to come, then removes what an
// earlier run left, and folders that become empty. Returns how many databases were removed. Errors: kIo.
Result<int64_t> clear_output_folder(const PpChartFolder& folder);

// Writes the mark of a finished run: what was done, for programs, and which files are ours. Errors: kIo.
Status mark_output_folder(const PpChartFolder& folder, const PpChartOptions& options, const PpChart& chart);

// Lists the steps that exist, for users who asked for another one.
inline constexpr size_t kMaxStepsListed = 10'000;

// Returns "10, 11"; for more than eight steps "8 to 4007".
inline std::string step_list(const std::set<int64_t>& steps) {
  constexpr size_t kMaxNamed = 8;
  if (steps.empty()) return {};
  if (steps.size() > kMaxNamed) return std::to_string(*steps.begin()) + " to " + std::to_string(*steps.rbegin());
  std::string text;
  for (const int64_t step : steps) append_item(text, std::to_string(step));
  return text;
}

// `stageline pp-chart`: makes the table StepTaskInfo, from which MindStudio Insight draws a pipeline chart, and the
// links between sends and receives, from the databases of an Ascend cluster's profile.
//
// There are two ways to label blocks. Stageline's uses the pipeline's cells, so a block's label follows from its
// message, its order and its messages to other ranks, and one odd block costs only one label. `as_msprof` repeats the
// rows of msprof-analyze 26.2's `cluster -m pp_chart`, including its bugs (docs/reference/pp-chart.md). One difference
// remains: communication ranges of Level_none are joined by connectionId alone, as before 18 Aug 2026.
// When no rank has a block, nothing is written or removed. Ranks are processed in parallel; memory is that of the
// blocks of a few ranks with as_msprof, and that of all cells otherwise. A rank that cannot be read or written gets an
// error, and the others are done nevertheless. Errors: those of find_rank_databases; kUsage for ranks that do not
// exist, or for an output folder that cannot take copies.
Result<PpChart> write_pp_chart(const PpChartOptions& options);

}  // namespace stageline
