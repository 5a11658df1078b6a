// The folder of copies of `stageline pp-chart`: never the data's own, never two runs in one.
//
// stageline_pp_chart.json (kPpChartMark) marks a folder as ours and lists what is ours in it, so that what an earlier
// run left can be taken away before the next one, and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "compat/msprof/chart.h"
#include "compat/msprof/rank_databases.h"

namespace stageline {

struct PpChartFolder {
  std::string path;
  std::vector<std::string> earlier;  // below path: an earlier run's files that are still there
  std::vector<std::string> planned;  // below path: the databases of this run and what is copied beside them
};

// What Insight and other readers look for beside the database: analysis.db, profiler_info*.json,
// profiler_metadata.json. Pairs of where it lies and where it goes below the folder of copies.
std::vector<std::pair<std::string, std::string>> companions_of(const RankDatabase& rank);

// Makes the folder, looks at what it holds, changes nothing in it. `all` are the databases that were found, `wanted`
// those to be copied. Errors: kUsage when the folder holds the profile itself or files that are not ours; kIo.
Result<PpChartFolder> open_output_folder(const PpChartOptions& options, const std::vector<RankDatabase>& all,
                                         const std::vector<RankDatabase>& wanted);

// Before the first file is written: says in the mark what is about to come, then removes what an earlier run left, and
// the folders that are empty then. Returns how many databases that were. Errors: kIo.
Result<int64_t> clear_output_folder(const PpChartFolder& folder);

// The mark of a finished run: what was done, for machines, and the files that are ours. Errors: kIo.
Status mark_output_folder(const PpChartFolder& folder, const PpChartOptions& options, const PpChart& chart);

}  // namespace stageline
