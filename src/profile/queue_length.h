// Counts the launched operations that wait on each stream. A call that launches device work adds 1, and the start of
// that work takes 1 away (a running kernel is not queued any more).
//
//   host    launch  launch            launch
//              │       │                 │
//   stream     │    ───┴───█████████     │  ──┴──███
//   length  0  1       2  1          1   …
#pragma once

#include "profile/step_series.h"
#include "profile/torch_view.h"

namespace stageline {

struct StreamQueue {
  std::string device;  // the pid of the events
  int64_t stream = -1;
  StepSeries waiting;      // launched and not started
  StepSeries in_flight;    // launched and not ended
  int64_t early = 0;       // work that starts before its launch
  int64_t unlaunched = 0;  // work without a launch in the trace, which is not counted
};
// Counts every launch of device rows, whatever the call is named. The kernels of a graph are one launch, which waits
// until the first of them starts and ends with the last. Work that starts before its launch never waited; this happens
// where clocks of host and device disagree.
std::vector<StreamQueue> stream_queues(const TorchRun& run, const TorchRank& rank);  // ordered by device, stream

// Notes what the queues leave out.
void note_queue_flaws(const std::vector<StreamQueue>& queues, Diagnostics& notes);

// The time for which the queue of a stream was full.
struct FullQueue {
  std::string device;
  int64_t stream = 0;
  int64_t longest = 0;  // most operations launched and not started
  int64_t full_ns = 0;
  int64_t span_ns = 0;                                              // first start to last end of the rank's rows
  double full_share() const { return share_of(full_ns, span_ns); }  // NaN without a span
};
inline constexpr int64_t kCudaQueueLength = 1024;  // launches that CUDA accepts before a call blocks; HTA's default
// For each stream with work whose launch is known: the time with at least `most` operations waiting.
std::vector<FullQueue> full_queues(const TorchRank& rank, const std::vector<StreamQueue>& queues, int64_t max);

// HTA's series: calls on its list of names, one point per event; equal times are in the order in which numpy leaves
// them.
struct QueuePoint {
  int64_t ts_ns = 0;
  uint32_t index = 0;  // index of the event
  int64_t stream = -1;
  uint16_t lane = 0;  // lane of the device row
  int64_t length = 0;
};
// Returns points by stream, then in HTA's order. Errors: kBadInput with HTA's AssertionError when calls and device rows
// do not pair up.
Result<std::vector<QueuePoint>> hta_queue_points(const TorchRun& run, const TorchRank& rank);

// Returns the points of every rank of the run. Errors: those of the first rank that fails.
Result<std::vector<std::vector<QueuePoint>>> hta_queues(const TorchRun& run);

// The points [begin, end) of one stream.
struct QueueRange {
  size_t begin, end;
};
std::vector<QueueRange> streams_of(const std::vector<QueuePoint>& points);

}  // namespace stageline
