// Finds the rank that a send operator of the host sent to.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "model/trace.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {

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

}  // namespace stageline
