// The drop-in for Paddle's profiler_helper_static.py: worker logs → pipeline_profile.json and
// pipeline_profile_perfetto.json, byte for byte as version V3 of that script writes them on inputs
// that it handles, and right where it fails (docs/howto/paddle-timeline.md lists every difference).
#pragma once

#include <string>

#include "base/diagnostics.h"
#include "base/result.h"
#include "compat/paddle_timeline/timeline_options.h"

namespace stageline {

struct PaddleTimeline {
  std::string chrome_path, perfetto_path;
  int64_t jobs = 0, logs = 0, machines = 0, steps = 0;
  Diagnostics diagnostics;
};

// Streams: memory is that of the jobs of a few logs, whatever the run's size.
// Errors: kNotFound, kIo, and kBadInput when no log holds a usable job.
Result<PaddleTimeline> write_paddle_timeline(const PaddleTimelineOptions& options);

}  // namespace stageline
