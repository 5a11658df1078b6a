// The events of the drop-in for Paddle's script as bytes.
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

// V3's numbers of rows in the Perfetto file: of the steps, and of the first device.
inline constexpr int64_t kStepsTid = 2333, kFirstRowTid = 2334;

struct TimelineRow {
  std::string path;          // path of the log; empty when it is missing
  std::string chrome_tid;    // as JSON: "\"GPU0\"", "\"GPU0(machine:1)\""
  std::string perfetto_tid;  // as JSON: "2334", or the string where V3 fails to replace it
};

struct TimelineRowName {
  std::string name;  // "GPU:0", "GPU:0(machine:1)"
  int64_t tid;
};

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
  std::string_view comma();  // between events: "" before the first one
  OutputFile& chrome_;
  OutputFile& perfetto_;
  int64_t devices_;
  bool first_ = true;
};

// Most bytes of a time.
inline constexpr size_t kMaxTimeBytes = 64;  // repr_double gives at most 25
// Writes a time as json.dumps does, repr(float) of microseconds since the epoch, and returns its end. `to` has room for
// kMaxTimeBytes.
char* put_time(char* to, const PyTime& time);

}  // namespace stageline
