// How many launched operations wait on each stream: +1 when a call launches device work, −1 when it starts
// (a running kernel is not queued any more).
//
//   host    launch  launch            launch
//              │       │                 │
//   stream     │    ───┴───█████████     │  ──┴──███
//   length  0  1       2  1          1   …
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "profile/step_series.h"
#include "profile/torch_view.h"

namespace stageline {

// Exact: every device row that knows its launch, whatever the call is named; a graph launch queues each of its
// kernels. Work that starts before its launch (clocks of host and device disagree) never waited.
struct StreamQueue {
  std::string device;  // the events' pid
  int64_t stream = -1;
  StepSeries waiting;      // launched, not started
  StepSeries in_flight;    // launched, not ended
  int64_t early = 0;       // work that starts before its launch
  int64_t unlaunched = 0;  // work without a launch in the trace, not counted
};
std::vector<StreamQueue> stream_queues(const TorchRun& run, const TorchRank& rank);  // by device, stream

// Says what the queues leave out.
void note_queue_flaws(const std::vector<StreamQueue>& queues, Diagnostics& notes);

// HTA's series: calls of its list of names, one point per event, equal times in the order numpy leaves them.
struct QueuePoint {
  int64_t ts_ns = 0;
  uint32_t index = 0;  // of the event
  int64_t stream = -1;
  uint16_t lane = 0;  // of the device row
  int64_t length = 0;
};
// Points by stream, then in HTA's order. Errors: kBadInput with HTA's AssertionError when calls and device rows
// do not pair up.
Result<std::vector<QueuePoint>> hta_queue_points(const TorchRun& run, const TorchRank& rank);

// The points of every rank of the run. Errors: the first rank's.
Result<std::vector<std::vector<QueuePoint>>> hta_queues(const TorchRun& run);

// Ranges [begin, end) of the points of one stream.
struct QueueRange {
  size_t begin, end;
};
std::vector<QueueRange> streams_of(const std::vector<QueuePoint>& points);

}  // namespace stageline
