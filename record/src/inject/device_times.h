// Converts CUPTI's times, nanoseconds of CLOCK_REALTIME, to the recorder's ticks. Both clocks are read repeatedly; a
// time is converted by the line through the two readings around it. Only the thread of cupti.cc uses this.
#pragma once

#include <cstdint>

#include "recorder.h"

namespace slr::cupti {

// Reads both clocks; readings less than 10 ms apart are skipped. To be called often.
void read_clocks();

// Starts a recording if there is none yet, and reads the clocks until two readings make a line. Returns false when
// nothing may be recorded.
bool can_record();

// Records a range whose times are CUPTI's. It waits for the writer, up to 2 s, rather than drop the range.
void record_range(DoneRange& range, int64_t start_ns, int64_t end_ns);

}  // namespace slr::cupti
