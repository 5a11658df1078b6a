// A digest's checksums prove that its bytes are those that were written, but not that its writer was honest. The
// assumptions of the rest of the program about a trace are checked here, as tests/fuzz/trace_invariants.h states them.
#pragma once

#include "model/trace.h"

namespace stageline::digest {

inline constexpr int64_t kMaxCounted = int64_t{1} << 38;  // of events and flaws: sums over all ranks fit

// Expects a trace of one part.
bool is_sound(const Trace& trace);

}  // namespace stageline::digest
