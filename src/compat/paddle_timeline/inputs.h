// Finds which logs the converter reads, in which order, and what their rows are called.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "compat/paddle_timeline/timeline_options.h"

namespace stageline {

struct TimelineRow {
  std::string path;          // path of the log; empty when it is missing
  std::string chrome_tid;    // as JSON: "\"GPU0\"", "\"GPU0(machine:1)\""
  std::string perfetto_tid;  // as JSON: "2334", or the string where V3 fails to replace it
};

struct TimelineRowName {
  std::string name;  // "GPU:0", "GPU:0(machine:1)"
  int64_t tid;
};

struct TimelineInputs {
  std::string output_folder;
  std::vector<TimelineRow> rows;       // in the order of the output
  std::vector<TimelineRowName> names;  // metadata of the Perfetto file
  int64_t machines = 1;
};

Result<TimelineInputs> find_timeline_inputs(const PaddleTimelineOptions& options, Diagnostics& diagnostics);

}  // namespace stageline
