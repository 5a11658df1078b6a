// To whom a send operator of the host went.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "model/trace.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {

inline constexpr int32_t kNoPeer = -1;      // not recorded
inline constexpr int32_t kAbsentPeer = -2;  // a rank whose trace is not here

// By the first that the trace has: the global rank in the collective arguments of the operator (NCCL); its own
// argument with the peer's number in the group (record_shapes); "nccl:send 0->1" inside it, numbers in the group.
// Numbers in a group are read as stages where process groups say which rank is which, else as ranks.
class MessagePeers {
 public:
  explicit MessagePeers(const Trace& trace);
  // Index of Trace::parts, kNoPeer or kAbsentPeer. `slice`: a c10d::send of that lane. O(log facts).
  int32_t to_part(size_t part, uint32_t lane, uint32_t slice) const;

 private:
  int32_t part_of_member(size_t part, int64_t member) const;

  const Trace& trace_;
  RankLayout layout_;
  std::unordered_map<int64_t, int32_t> part_of_rank_;
  std::unordered_map<int64_t, int32_t> part_of_place_;  // replica << 32 | stage; kNoPeer: several ranks
};

}  // namespace stageline
