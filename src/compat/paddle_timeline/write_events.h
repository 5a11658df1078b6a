// Writes the bytes of the two files, in one pass: Python's json.dumps of dicts, whose keys have another order in begin
// events than in end events.
#pragma once

#include "base/output_file.h"
#include "compat/paddle_timeline/inputs.h"
#include "compat/paddle_timeline/step_rule.h"

namespace stageline {

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

}  // namespace stageline
