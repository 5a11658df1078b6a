// The worker logs of a run, and the rows that they become.
#pragma once

#include "compat/paddle_timeline/timeline_writer.h"

namespace stageline {

// The options of the drop-in for Paddle's script.
struct PaddleTimelineOptions {
  std::string log_dir;
  std::optional<std::vector<int32_t>> devices;  // in the given order; when absent, all that are found
  bool multi_machine = false;                   // log_dir holds a folder for each machine
  bool compat_v3 = false;        // writes the output of Paddle's V3 script, with its errors; fails where V3 raises one
  Progress* progress = nullptr;  // shows how far reading is; not owned, null: progress is not shown
};

struct TimelineInputs {
  std::string output_folder;
  std::vector<TimelineRow> rows;       // in the order of the output
  std::vector<TimelineRowName> names;  // metadata of the Perfetto file
  int64_t machines = 1;
};

// Finds the logs that are asked for, in the order of the output. Errors: kNotFound, kIo, kBadInput where there is none.
Result<TimelineInputs> find_timeline_inputs(const PaddleTimelineOptions& options, Diagnostics& diagnostics);

}  // namespace stageline
