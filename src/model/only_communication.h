// Whether a trace has communication and nothing else (NCCL Inspector's logs), as open_trace() found and noted: nothing
// says what computing covers, or how long devices are idle.
#pragma once

#include "model/trace.h"

namespace stageline {

inline bool is_only_communication(const Trace& trace) {
  return trace.diagnostics.count("source.only_communication") > 0;
}

}  // namespace stageline
