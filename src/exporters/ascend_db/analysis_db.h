// Writes analysis.db: the sums that Ascend's own profiler computes for one rank.
#pragma once

#include <string>
#include <vector>

#include "exporters/ascend_db/rank_rows.h"

namespace stageline::ascend_db {

// Writes the sums of each step. `steps` are the [start, end) of each step on the device. All times in `rows` are true
// times; `offset_ns` is added to them to give the rank's own stamps. Errors: kIo.
Status write_analysis_db(const RankRows& rows, const AscendDbOptions& options, const std::vector<Span>& steps,
                         int64_t offset_ns, const std::string& path);

}  // namespace stageline::ascend_db
