// Theory: the time of every cell if its schedule had been followed with mean durations and without latency. The
// pipeline layer computes it, and exporters draw it next to the measured cells. Phases are defined here too, though
// they need no theory.
#pragma once

#include "model/trace.h"

namespace stageline {

inline constexpr int64_t kNoTheory = INT64_MIN;

// One step of one replica. Where every rank has a clock of its own, each rank is placed by itself, and `end_ns` cannot
// be compared between ranks.
struct TheoryStep {
  int32_t step = 0, dp = 0;
  int64_t start_ns = 0, end_ns = 0;  // first start and last end of the theory's cells
  // First start and last end of the compute cells that have a place in the theory.
  int64_t actual_start_ns = 0, actual_end_ns = 0;
  bool own_pace = false;  // true where a stage's means were moved to this step's own pace
};

struct Theory {
  std::string schedule;  // the schedule's name, "1f1b"; "" when there is no theory
  Text why_not;          // when there is none: the reason, in words for a note
  bool by_rank = false;  // each rank was placed by itself, because ranks share no clock
  int64_t without = 0;   // compute cells without a place in the theory, since the schedule has no such work
  // For each cell, on the clock that Trace's times are compared on; kNoTheory without a place.
  std::vector<int64_t> start_ns, end_ns;
  std::vector<bool> fused;        // for each cell: whether it is half of an overlapped pair
  std::vector<TheoryStep> steps;  // ordered by step, then replica
  std::vector<int32_t> outliers;  // steps left out of the means (PipelineSums::outliers), ascending

  bool known() const { return !schedule.empty(); }
  bool has(size_t cell) const { return cell < start_ns.size() && start_ns[cell] != kNoTheory; }
};

// The phases of one rank in one step. Warm-up lasts from the rank's first compute cell to its first backward (B or I).
// Cool-down lasts from the end of its last forward (or from that first backward, if later) to the end of its last
// compute cell. Steady is between the two. A rank without backwards or without forwards has no phases.
struct RankPhases {
  int32_t step = 0, part = 0;
  int64_t start_ns = 0, steady_ns = 0, cool_down_ns = 0, end_ns = 0;
};
std::vector<RankPhases> rank_phases(const Trace& trace);  // sorted by step, then part. Expects sorted cells. O(cells)

// The phases of a whole pipeline in one step. They start with the first start, the first backward of any rank, and the
// end of the last forward of any rank; the last one ends with the last end. Ordered by step, then replica. Times are
// common times; they mean nothing where ranks share no clock.
struct PipelinePhases {
  int32_t step = 0, dp = 0;
  int64_t start_ns = 0, steady_ns = 0, cool_down_ns = 0, end_ns = 0;
};
std::vector<PipelinePhases> pipeline_phases(const Trace& trace, const std::vector<RankPhases>& ranks);

}  // namespace stageline
