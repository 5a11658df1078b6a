// The folder for copies of `stageline pp-chart`. It is never the folder of the data, and never shared by two runs.
//
// The file stageline_pp_chart.json (kPpChartMark) marks a folder as ours and lists our files in it. So what an earlier
// run left, and nothing else, can be removed before the next one.
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

}  // namespace stageline
