// The data of causes in ranks that meet inside cells.
#pragma once

#include "model/cells.h"

namespace stageline {

enum class PeerFault : uint8_t { kExperts, kRouting, kSequences, kLink, kCollective, kPauses };

struct PeersOwn {
  PeerFault fault = PeerFault::kExperts;
  double lasting = 0, correlation = 0;  // of experts, see PeerWork::Experts
  int32_t layer = kUnknown;             // of the hottest rank
  double own_ns = 0, others_ns = 0;     // a transfer, and that of the others
};

}  // namespace stageline
