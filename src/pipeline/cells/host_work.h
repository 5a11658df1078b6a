// What the host of one rank did, cut into forward and backward work and messages, by evidence alone: sequence numbers
// of autograd, runs of its engine, sends and receives.
//
//   main thread      recv |aten::linear aten::relu| send   recv |evaluate_function: ReluBackward0, AddmmBackward0| send
//                         '- seq 110 … 113 -------'             '- seq 113 … 110 -------------------------------'
//                         forward stretch                       backward stretch of that forward (same numbers)
//
// A forward stretch is what makes autograd nodes between two events of another kind; a backward stretch is a run of
// nodes that one forward made. Nodes that run again (zero-bubble schedules ask autograd twice) are weight gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/message_peers.h"

namespace stageline {

inline constexpr uint32_t kNoStretch = UINT32_MAX;
inline constexpr int64_t kOutside = INT64_MIN;

struct Stretch {
  CellKind kind = CellKind::kForward;  // F, B, I or W
  uint32_t lane = 0;                   // thread of its first operator
  uint32_t slice = 0;                  // its first operator
  int64_t start_ns = 0, end_ns = 0;
  int64_t step = 0;                // ProfilerStep's number, kOutside them; without them, optimizer steps before it
  uint32_t forward = kNoStretch;   // whose work it is; of a forward stretch itself; none: made before the trace began
  uint32_t backward = kNoStretch;  // of a forward stretch: its B or I
  bool sends = false;              // a send follows it
  int32_t to_part = -1;            // index of Trace::parts that it sends to; kNoPeer, kAbsentPeer
};

struct HostWork {
  std::vector<Stretch> stretches;  // by start
  int64_t sends = 0, receives = 0;
  int64_t nodes = 0;       // top-level runs of autograd's engine
  bool has_peers = false;  // every send that follows a stretch names its peer
};

// Parts whose host sent or received nothing come back without stretches. O(slices + facts log facts), by part.
std::vector<HostWork> find_host_work(const Trace& trace);

}  // namespace stageline
