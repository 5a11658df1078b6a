// What a rank does before the first cell of its steps. Part of causes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diagnosis/causes/start_delays.h"

namespace stageline {

// A stretch of time on one rank, right before the first cell of a step.
struct BeforeStep {
  int64_t from_ns, to_ns;
};

// A rank that waits for nobody and begins its steps later than the same stage of other replicas.
struct LateBegins {
  uint32_t worker = 0;
  bool as_late = false;  // it starts everything else about as late: then that is why
  int64_t count = 0;
  double each_ns = 0;  // mean delay beyond the others
  std::shared_ptr<const std::map<uint32_t, double>>
      late_ns;  // by operation, in long steps as far as usual ones know it
  std::vector<BeforeStep> pauses;

  CauseWorld without() const;
};
// At most kMaxWorkerCauses of them, those that lose most. `late` are ranks whose other cells start late; `cell_ns` is
// the time of the median compute cell. O(cells).
std::vector<LateBegins> late_begins(const CauseScene& scene, const LateWorkers& late, double cell_ns);

// A stretch of time on some rank, by its own clock.
struct RankWindow {
  int32_t part;
  int64_t from_ns, to_ns;
};
// The name of the recorded rows of kind "other" that fill at least half of these windows; "" where none do. O(cells log
// windows).
std::string name_that_fills(const Trace& trace, std::vector<RankWindow> windows);

}  // namespace stageline
