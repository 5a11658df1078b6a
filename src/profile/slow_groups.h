// Groups whose collectives take longer than the same collectives of their siblings: groups of one purpose and size, on
// as many machines. Waiting is left out, so who comes late does not matter.
//
//            call 1  call 2  call 3 …
//   0-3       ▫       ▫       ▫
//   4-7       ▪       ▪       ▪      nearly all take longer than the siblings' median: its links, or a card of its
//   ranks 8-11      ▫       ▫       ▪      one of them does: noise
#pragma once

#include "profile/ledger.h"

namespace stageline {

// Machines of these ranks, as far as they are in the trace; those without a name are one.
size_t machines_of(const TorchRun& run, const std::vector<int32_t>& ranks);

struct SlowGroup {
  std::vector<int32_t> ranks;
  size_t machines = 1;
  int64_t siblings = 0;
  double ratio = 1;               // median over its collectives, of their transfers to the siblings' median
  int64_t count = 0, longer = 0;  // collectives, and those of them that take longer than that median
  // The kind and size that loses most:
  CollectiveKind kind = CollectiveKind::kUnknown;
  int64_t bytes = 0;
  double own_gbps = 0, others_gbps = 0;  // bus rates
  // A call of each collective, and by how much it takes longer.
  std::vector<std::pair<const LedgerCall*, int64_t>> excess;
};
// Groups of which nine of ten collectives, or most in every step, take longer, and usually by a twentieth or more; who
// loses most comes first. O(n log n) in all instances.
std::vector<SlowGroup> slow_groups(const TorchRun& run, const Ledger& ledger);

}  // namespace stageline
