// Cuts what the host of one rank did into forward work, backward work and messages. Names of ranges are not needed; the
// evidence is autograd's sequence numbers, the runs of its engine, and sends and receives.
//
//   main thread      recv |aten::linear aten::relu| send   recv |evaluate_function: ReluBackward0, AddmmBackward0| send
//                         '- seq 110 … 113 -------'             '- seq 113 … 110 -------------------------------'
//                         forward stretch                       backward stretch of that forward (same numbers)
//
// A forward stretch is the operators that make autograd nodes between two events of another kind. A backward stretch is
// a run of nodes that one forward made. When nodes run a second time (zero-bubble schedules call autograd twice), the
// second run computes weight gradients.
#pragma once

#include "pipeline/cells/rank_layout.h"

namespace stageline {

// Finds the rank that a send operator of the host sent to.

inline constexpr int32_t kNoPeer = -1;      // the peer was not recorded
inline constexpr int32_t kAbsentPeer = -2;  // the peer is a rank whose trace is not part of the input

// Uses the first of these that the trace has: the global rank in the operator's collective arguments (NCCL), the
// operator's own argument (record_shapes), or the text "nccl:send 0->1" inside it. The last two are numbers in the
// group. Numbers in a group are stages if process groups assign ranks to stages, and ranks otherwise.
class MessagePeers {
 public:
  explicit MessagePeers(const Trace& trace);
  // Returns the index of Trace::parts, kNoPeer or kAbsentPeer. `slice` is a c10d::send in lane `lane`. O(log facts).
  int32_t to_part(size_t part, uint32_t lane, uint32_t slice) const;

 private:
  int32_t part_of_member(size_t part, int64_t member) const;

  const Trace& trace_;
  RankLayout layout_;
  std::unordered_map<int64_t, int32_t> part_of_rank_;
  // The key is replica << 32 | stage; the value is kNoPeer when several ranks have that place.
  std::unordered_map<int64_t, int32_t> part_of_place_;
};

inline constexpr uint32_t kNoStretch = UINT32_MAX;
inline constexpr int64_t kOutside = INT64_MIN;

struct Stretch {
  CellKind kind = CellKind::kForward;  // F, B, I or W
  uint32_t lane = 0;                   // thread of its first operator
  uint32_t slice = 0;                  // its first operator
  int64_t start_ns = 0, end_ns = 0;
  // ProfilerStep's number, kOutside between them; without ProfilerSteps, how many optimizer steps are over.
  int64_t step = 0;
  // The forward it belongs to (a forward stretch: itself); kNoStretch when that came before the trace began.
  uint32_t forward = kNoStretch;
  uint32_t backward = kNoStretch;  // for a forward stretch: its B or I
  bool sends = false;              // whether a send follows it
  int32_t to_part = -1;            // the part that it sends to, as index of Trace::parts; or kNoPeer, kAbsentPeer
};

// A send or a receive of the host, and the stretch that made what it carries or that needs it.
struct HostMessage {
  bool is_send = false;
  uint32_t lane = 0, slice = 0, stretch = 0;
};

struct HostWork {
  std::vector<HostMessage> messages;  // of ranks without a device, whose messages are those of the host
  std::vector<Stretch> stretches;     // in order of start
  int64_t sends = 0, receives = 0;
  int64_t nodes = 0;       // how many nodes autograd's engine ran that are inside no other node
  bool has_peers = false;  // every send that follows a stretch names its receiver
};

// Returns the work of each part. Parts whose host sent and received nothing have no stretches. O(slices + facts log
// facts).
std::vector<HostWork> find_host_work(const Trace& trace);

}  // namespace stageline
