// Every message of a run with the time it took, whatever was recorded of it.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/replay/graph_ops.h"

namespace stageline {

enum class LinkEvidence : uint8_t {
  kNone,      // one stage, or nothing links the stages
  kMessages,  // recorded sends and receives
  kGaps,      // from the end of a cell to the start of the one that waited for it
};

struct LinkTransfer {
  int32_t from_part = 0, to_part = 0;
  int32_t step = 0;
  bool forward = true;
  double ns = 0;           // may be below 0 by what clocks are off
  double bytes = -1;       // −1: unknown
  double end_gap_ns = -1;  // between the ends of send and receive; −1: none was recorded
  // Cells: the send and the receive, or, of gaps, what gave and what waited; kNoSlice: not told.
  uint32_t from_cell = kNoSlice, to_cell = kNoSlice;
};

struct LinkTransfers {
  LinkEvidence evidence = LinkEvidence::kNone;
  bool mapped = false;  // on common time, else as stamped
  std::vector<LinkTransfer> list;
};

// Of the graph's groups where it was made of recorded operations; else of matched messages; else of the links between
// cells, where the receiver waited. O(cells log cells).
LinkTransfers find_transfers(const Trace& trace, const StepGraph& graph);

}  // namespace stageline
