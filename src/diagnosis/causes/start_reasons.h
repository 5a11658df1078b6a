// The reasons why compute cells start late: ranks that launch late, links with late messages, ranks that begin their
// steps late, single pauses, or all hosts. One measurement, since each late cell has one of these reasons. Part of
// causes.
#pragma once

#include <cmath>
#include <set>
#include <vector>

#include "diagnosis/causes/start_delays.h"
#include "diagnosis/causes/step_begins.h"

namespace stageline {

// A link whose messages make cells start late. They were not recorded, or their receives show it.
struct LateLink {
  std::vector<WorkerWay> ways;  // the directions that wait for it: the same two stages, in one replica or in several
  bool tail = false;            // single messages are late, in some steps; otherwise the link is slow
};

struct StartReasons {
  explicit StartReasons(const CauseScene& scene);

  StartDelays starts;          // where it is not known, nothing below is filled
  bool everywhere = false;     // cells are late on most ranks, and too often for pauses; then no link is looked for
  double above_ns = INFINITY;  // of these, delays above this are pauses, another kind than the rest; ∞: there are none
  std::vector<LateBegins> begins;
  std::vector<LateLink> links;  // at most kMaxWorkerCauses
  std::set<WorkerWay> linked;   // the directions whose late cells links explain
  LateWorkers late_receivers;   // late ranks whose messages may be the cause as well
};

// The direction of a link that is late by most.
WorkerWay worst_way(const StartDelays& starts, const LateLink& link);
// Returns the common part of all suspicions of such a link: its place, and the scenario in which its messages are
// prompt.
Suspect suspect_of(const StartDelays& starts, const LateLink& link);

}  // namespace stageline
