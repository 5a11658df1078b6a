// Finds which ranks a page shows first where there are too many to show all: those that hold the others up, as the
// analysis stragglers finds them.
#pragma once

#include <string>

#include "base/result.h"
#include "facts/run.h"

namespace stageline {

inline constexpr size_t kMaxWorstRanks = 16;  // of one stage

// {ranks: [{rank, beyond_ns, peer_ratio, verdict}]}, the worst first (worst_workers()), at most kMaxWorstRanks of a
// stage. `run` is the run as recorded. Errors: those of the graph of what ran.
Result<std::string> worst_ranks_json(const Run& run);

}  // namespace stageline
