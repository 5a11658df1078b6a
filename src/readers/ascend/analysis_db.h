// Reads analysis.db: the profiler's own sums of one rank – steps, communication operations, links – in four tables.
// Newer files have a deviceId in StepTraceTime. A column that does not exist is read as −1.
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

// `device` is this rank's device, or −1 when not known: rows of StepTraceTime that name another device belong to
// another rank. Errors: as SqliteDb::open_read. A damaged table is read up to the damage and counted as
// "ascend.analysis_db".
Result<AnalysisSums> read_analysis_db(const std::string& path, int32_t device, Diagnostics& diagnostics);

// Reads step_trace_time.csv: the same sums of steps, with times in microseconds. Lines without a usable number are
// counted as "ascend.step_line". Errors: kNotFound, kIo, kLimit; kBadInput when there is no column "Computing".
Result<std::vector<StepSummary>> read_step_trace_time(const std::string& path, Diagnostics& diagnostics);

}  // namespace stageline::ascend
