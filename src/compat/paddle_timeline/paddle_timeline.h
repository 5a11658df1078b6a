// The drop-in for Paddle's profiler_helper_static.py: turns worker logs into pipeline_profile.json and
// pipeline_profile_perfetto.json. For inputs that version V3 of that script handles, both files are identical to its
// files byte for byte. Where V3 fails, they are right (docs/reference/paddle-timeline.md lists every difference).
#pragma once

#include "base/output_file.h"
#include "readers/paddle_log/scan.h"

namespace stageline {

// A time as Python holds it: a float, or the integer 0 with which a variable was initialised. The two print differently
// ("0.0", "0") and compare equal.
struct PyTime {
  double us = 0;
  bool is_integer_zero = true;
};

struct TimelineStep {
  PyTime start, end;
};

// The first type other than `default` marks steps: each of its jobs with micro-batch 0 opens one. The previous step is
// closed only if its own start is not zero, and its end is the end of the last line. After the last line the open step
// is closed, even when there was none (which gives [0, 0]).
std::vector<TimelineStep> steps_as_v3(const PaddleLog& log);

// Does the same for cleaned jobs, without V3's bugs. A log without jobs has no steps, a log of `default` jobs has one
// step per job, and a log whose marker is lost starts at its first job.
std::vector<TimelineStep> steps_repaired(const PaddleLog& log);

// The options of the drop-in for Paddle's script.
struct PaddleTimelineOptions {
  std::string log_dir;
  std::optional<std::vector<int32_t>> devices;  // in the given order; when absent, all that are found
  bool multi_machine = false;                   // log_dir holds a folder for each machine
  bool compat_v3 = false;        // writes the output of Paddle's V3 script, with its errors; fails where V3 raises one
  Progress* progress = nullptr;  // shows how far reading is; not owned, null: progress is not shown
};

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

// Writes the bytes of the two files, in one pass: Python's json.dumps of dicts, whose keys have another order in begin
// events than in end events.
class TimelineWriter {
 public:
  // `perfetto_devices`: V3 replaces the quoted texts "Step" and "GPU0" … "GPU<n−1>" by numbers wherever they occur,
  // even as the name of a job type.
  TimelineWriter(OutputFile& chrome, OutputFile& perfetto, int64_t perfetto_devices);

  void jobs(const PaddleLog& log, const TimelineRow& row);
  void step(int64_t number, const PyTime& start, const PyTime& end);
  void finish(const std::vector<TimelineRowName>& names);

 private:
  void both(std::string_view text);
  OutputFile& chrome_;
  OutputFile& perfetto_;
  int64_t devices_;
  bool first_ = true;
};

struct PaddleTimeline {
  std::string chrome_path, perfetto_path;
  int64_t jobs = 0, logs = 0, machines = 0, steps = 0;
  Diagnostics diagnostics;
};

// Works as a stream: memory is that of the jobs of a few logs, whatever the size of the run. Errors: kNotFound, kIo,
// and kBadInput when no log has a usable job.
Result<PaddleTimeline> write_paddle_timeline(const PaddleTimelineOptions& options);

}  // namespace stageline
