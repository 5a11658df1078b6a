// Finds which file has which rank of an Ascend cluster's profile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"

namespace stageline {

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

}  // namespace stageline
