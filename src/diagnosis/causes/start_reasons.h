// The reasons why compute cells start late: ranks that launch late, links with late messages, ranks that begin their
// steps late, single pauses, or all hosts. One measurement, since each late cell has one of these reasons. Part of
// causes.
#pragma once

#include "diagnosis/causes/rank_windows.h"
#include "diagnosis/causes/start_delays.h"

namespace stageline {

// Ranks that begin their steps late: a rank that waits for no other rank starts its first cell later than the same
// stage does in other replicas. It does something else before the step.
//
//     rank 0   step 7 ▐▐▐▐      ▐▐ first cell of step 8
//     rank 4   step 7 ▐▐▐▐      ├── late ──▶▐▐
//
// Delays that all ranks have are a line of the breakdown.
struct LateBegins {
  uint32_t worker = 0;
  bool as_late = false;  // its other cells start about as late, which explains these beginnings
  int64_t count = 0;
  double each_ns = 0;  // mean delay beyond the others
  // Delays beyond the others, by operation. Delays of long steps are included up to kMaxOfUsual × the largest usual
  // one.
  std::shared_ptr<const std::map<uint32_t, double>> late_ns = {};
  std::vector<RankWindow> pauses = {};  // the delays, each right before its cell

  CauseWorld without() const;
};
// Returns at most kMaxWorkerCauses ranks, the largest delays first. `late` are the ranks whose other cells start late;
// `cell_ns` is the time of the median compute cell. O(operations).
std::vector<LateBegins> late_begins(const CauseScene& scene, const LateWorkers& late, double cell_ns);

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
