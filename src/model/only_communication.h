// Whether a trace has communication and nothing else, as NCCL Inspector's logs do: nothing says what computing covers,
// or how long devices are idle.
#pragma once

#include "model/trace.h"

namespace stageline {

// What open_trace() found and noted.
inline bool is_only_communication(const Trace& trace) {
  return trace.diagnostics.count("source.only_communication") > 0;
}

}  // namespace stageline
