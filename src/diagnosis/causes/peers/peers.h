// Ranks that meet inside cells: uneven experts, longer sequences of some, slow exchanges, pauses between them.
#pragma once

#include <vector>

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

enum class PeerFault : uint8_t { kExperts, kRouting, kSequences, kLink, kCollective, kPauses };

struct PeersOwn {
  PeerFault fault = PeerFault::kExperts;
  double lasting = 0, correlation = 0;  // of experts, see PeerWork::Experts
  int32_t layer = kUnknown;             // of the hottest rank
  double own_ns = 0, others_ns = 0;     // a transfer, and that of the others
};

Telling tell_peers(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
