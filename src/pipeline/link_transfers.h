// Every message of a run with the time it took, whatever was recorded of it.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/links.h"

namespace stageline {

struct Transfer {
  int32_t from_part = 0, to_part = 0;
  int32_t step = 0;
  bool forward = true;
  double ns = 0;      // may be below 0 by what clocks are off
  double bytes = -1;  // −1: unknown
};

struct Transfers {
  LinkEvidence evidence = LinkEvidence::kNone;
  bool mapped = false;  // on common time, else as stamped
  std::vector<Transfer> list;
};

// Of the graph's groups where it was made of recorded operations; else of matched messages; else of the links between
// cells, where the receiver waited. O(cells log cells).
Transfers find_transfers(const Trace& trace, const StepGraph& graph);

}  // namespace stageline
