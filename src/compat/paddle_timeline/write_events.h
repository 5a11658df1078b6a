// The bytes of the two files: Python's json.dumps of dicts whose key order differs between begin
// and end events, written to both files in one pass.
#pragma once

#include "base/output_file.h"
#include "compat/paddle_timeline/inputs.h"
#include "compat/paddle_timeline/step_rule.h"

namespace stageline {

class TimelineWriter {
 public:
  // `perfetto_devices`: V3 turns the quoted texts "Step" and "GPU0" … "GPU<n−1>" into numbers
  // wherever they stand, a job type of that name included.
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
