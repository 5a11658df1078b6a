// Finds the meaning of a communication kernel in the pipeline where no annotation gives it: a message or a collective,
// and in which direction.
#pragma once

#include <vector>

#include "model/trace.h"
#include "pipeline/cells/cell_mark.h"

namespace stageline {

struct MessageKind {
  CellKind kind = CellKind::kCollective;
  bool known = false;  // false for a message of which neither peer nor direction is known
};

// `around` is the compute mark that launched the kernel; nullptr when none did. A message has the direction of that
// mark. Without one, the peer decides: a message to a later stage is forward, and so is one from the last stage to the
// first where ranks have several chunks. Expects Part::stage. Returns at least one kind: a kernel that carries several
// messages (batch_isend_irecv) has all their kinds, each once. O(log facts).
std::vector<MessageKind> message_kinds(const Trace& trace, size_t part, uint32_t kernel, const CellMark* around,
                                       int32_t chunks);

}  // namespace stageline
