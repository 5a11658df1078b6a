// The drop-in for Paddle's profiler_helper_static.py: worker logs → pipeline_profile.json and
// pipeline_profile_perfetto.json, byte for byte as version V3 of that script writes them on inputs
// that it handles, and right where it fails (docs/howto/paddle-timeline.md lists every difference).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/progress.h"
#include "base/result.h"

namespace stageline {

struct PaddleTimelineOptions {
  std::string log_dir;
  std::optional<std::vector<int32_t>> devices;  // in the order given; absent: all that are found
  bool multi_machine = false;
  bool compat_v3 = false;  // V3's output whatever it is, and an error where V3 raises
  Progress* progress = nullptr;
};

struct PaddleTimeline {
  std::string chrome_path, perfetto_path;
  int64_t jobs = 0, logs = 0, machines = 0, steps = 0;
  Diagnostics diagnostics;
};

// Streams: memory is that of the jobs of a few logs, whatever the run's size.
// Errors: kNotFound, kIo, and kBadInput when no log holds a usable job.
Result<PaddleTimeline> write_paddle_timeline(const PaddleTimelineOptions& options);

}  // namespace stageline
