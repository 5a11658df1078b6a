// analysis.db: the profiler's own sums of one rank – steps, communication operations, links – in four tables. Newer
// ones have a deviceId in StepTraceTime; a column that is not there reads as not said.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "model/trace.h"
#include "readers/ascend/text_communication.h"

namespace stageline::ascend {

struct AnalysisSums {
  std::vector<StepSummary> steps;
  CommunicationSums communication;
  int64_t rows = 0;  // of all tables
};

// `device`: rows of StepTraceTime that name another one are not this rank's; −1: not known. Errors: as
// SqliteDb::open_read. A table that is damaged is read up to there and counted as "ascend.analysis_db".
Result<AnalysisSums> read_analysis_db(const std::string& path, int32_t device, Diagnostics& diagnostics);

// step_trace_time.csv: the same sums of steps, times in microseconds. Lines without a usable number are counted as
// "ascend.step_line". Errors: kNotFound, kIo, kLimit; kBadInput when there is no column "Computing".
Result<std::vector<StepSummary>> read_step_trace_time(const std::string& path, Diagnostics& diagnostics);

}  // namespace stageline::ascend
