// Which file holds which rank of an Ascend cluster's profile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"

namespace stageline {

struct RankDatabase {
  int32_t rank = -1;   // −1: the file's name has no number
  std::string path;    // as it can be opened
  std::string rel;     // below the folder that was named
  std::string folder;  // of the rank: holds profiler_info*.json; that of the file itself for msmonitor
};

struct RankDatabases {
  std::vector<RankDatabase> ranks;  // by rank, each once
  bool msmonitor = false;           // files of msmonitor: they have no ranks' folders
};

// ascend_pytorch_profiler[_N].db or ascend_mindspore_profiler[_N].db inside folders ASCEND_PROFILER_OUTPUT at any
// depth, else msmonitor_<pid>_<17 digits>_<rank>.db. Of two folders of one rank the newest counts, by the time stamp in
// its name, and `notes` says so (source: msprof-analyze 26.2, described in docs/howto/pp-chart.md).
// Errors: kNotFound when there is none, with what was found instead; kAmbiguous for PyTorch beside MindSpore.
Result<RankDatabases> find_rank_databases(const std::string& folder, Diagnostics& notes);

}  // namespace stageline
