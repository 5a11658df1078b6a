// What a communication kernel is in the pipeline, when no annotation says it: message or collective, and which way.
#pragma once

#include "model/trace.h"
#include "pipeline/torch_cells.h"

namespace stageline {

struct MessageKind {
  CellKind kind = CellKind::kCollective;
  bool known = false;  // false: a message whose peer or direction nothing tells
};

// `around`: the compute mark that launched it; nullptr: none. A message goes with the mark's direction, else with
// its peer's: to a later stage is forward, and from the last to the first too where ranks have several chunks.
// Part::stage must be there. O(log facts).
MessageKind message_kind(const Trace& trace, size_t part, uint32_t kernel, const CellMark* around, int32_t chunks);

}  // namespace stageline
