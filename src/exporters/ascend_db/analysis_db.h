// analysis.db: what the profiler itself sums up of one rank.
#pragma once

#include <string>
#include <vector>

#include "exporters/ascend_db/rank_rows.h"

namespace stageline::ascend_db {

// Sums of each step [start, end) of the device's time; every part of `rows` in true time, `offset_ns` added to
// stamps. Errors: kIo.
Status write_analysis_db(const RankRows& rows, const AscendDbOptions& options, const std::vector<Span>& steps,
                         int64_t offset_ns, const std::string& path);

}  // namespace stageline::ascend_db
