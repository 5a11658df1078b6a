// The drop-in for Paddle's profiler_helper_static.py: turns worker logs into pipeline_profile.json and
// pipeline_profile_perfetto.json. For inputs that version V3 of that script handles, both files are identical to its
// files byte for byte. Where V3 fails, they are right (docs/reference/paddle-timeline.md lists every difference).
#pragma once

#include "compat/paddle_timeline/timeline_inputs.h"

namespace stageline {

struct PaddleTimeline {
  std::string chrome_path, perfetto_path;
  int64_t jobs = 0, logs = 0, machines = 0, steps = 0;
  Diagnostics diagnostics;
};

// Works as a stream: memory is that of the jobs of a few logs, whatever the size of the run. Errors: kNotFound, kIo,
// and kBadInput when no log has a usable job.
Result<PaddleTimeline> write_paddle_timeline(const PaddleTimelineOptions& options);

}  // namespace stageline
