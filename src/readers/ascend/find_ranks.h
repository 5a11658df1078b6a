// Finds which files belong to which rank of an Ascend profile.
//
//   <worker>_<pid>_<stamp>_ascend_pt/                      RankFiles::folder, at any depth
//     profiler_info_<rank>.json   profiler_metadata.json
//     ASCEND_PROFILER_OUTPUT/     ascend_pytorch_profiler_<rank>.db   analysis.db   or the text exports
//   PROF_…/msprof_<14 digits>.db                           without a framework
//   msmonitor_<pid>_<17 digits>_<rank>.db
//
// Names and rules: docs/formats/ascend.md.
#pragma once

#include "readers/ascend/part_builder.h"
#include "readers/reader.h"

namespace stageline::ascend {

struct RankFiles {
  int32_t rank = -1;
  std::string folder, stamp;
  // Paths; "" where there is no such file.
  std::string profiler_db, analysis_db, profiler_info, profiler_metadata, device_info;
  std::string kernel_details, trace_view, communication, communication_matrix, step_trace_time;
  bool mindspore = false, msmonitor = false, msprof = false;
};

// Returns one entry per rank, in order of ranks; of several for one rank the newest, with a note. Errors: kBadInput
// when there is nothing of an Ascend profile, kAmbiguous when profiles of PyTorch and MindSpore lie together.
Result<std::vector<RankFiles>> find_ranks(const Source& source, Diagnostics& notes);

// Returns true for "ascend_pytorch_profiler_3.db", "ascend_mindspore_profiler.db", "msprof_20250521091718.db" and
// "msmonitor_1_…_3.db".
bool is_profiler_db(std::string_view name);

// Returns true when a file of the source is one of the text exports that RankFiles lists, by its name and first bytes.
bool is_text_export(const Source& source, size_t file);

// Reads a rank's profiler database into a Part.
// The file is not changed. Memory: the columns of the part, and what joins need, at most some 100 bytes a task.
RankPart read_rank_db(const RankFiles& files, const ReadOptions& options);

}  // namespace stageline::ascend
