// What a communication kernel is in the pipeline, when no annotation says it: message or collective, and which way.
#pragma once

#include <vector>

#include "model/trace.h"
#include "pipeline/cells/cell_mark.h"

namespace stageline {

struct MessageKind {
  CellKind kind = CellKind::kCollective;
  bool known = false;  // false: a message whose peer or direction nothing tells
};

// `around`: the compute mark that launched it; nullptr: none. A message goes with the mark's direction, else with
// its peer's: to a later stage is forward, and from the last to the first too where ranks have several chunks.
// Part::stage must be there. At least one: a kernel that carries several (batch_isend_irecv) is each of them, every
// kind once. O(log facts).
std::vector<MessageKind> message_kinds(const Trace& trace, size_t part, uint32_t kernel, const CellMark* around,
                                       int32_t chunks);

}  // namespace stageline
