// Theory: when every cell would have run, had its schedule been followed with mean durations and no latency. Made by
// the pipeline layer, drawn by exporters beside what happened. And phases, which need no theory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"

namespace stageline {

inline constexpr int64_t kNoTheory = INT64_MIN;

// One step of one replica. Where every rank has a clock of its own, ranks are anchored one by one and `end_ns` is of no
// use between them.
struct TheoryStep {
  int32_t step = 0, dp = 0;
  int64_t start_ns = 0, end_ns = 0;                // of the theory: first start and last end of its cells
  int64_t actual_start_ns = 0, actual_end_ns = 0;  // of the compute cells that have a place in it
  bool own_pace = false;                           // a stage's means were moved to this step's own pace
};

struct Theory {
  std::string schedule;                   // "1f1b"; "" when there is no theory
  std::string why_not;                    // then: in words, for a note
  bool by_rank = false;                   // anchored rank by rank: no common clock
  int64_t without = 0;                    // compute cells that have no place in it: the schedule has no such work
  std::vector<int64_t> start_ns, end_ns;  // by cell; kNoTheory. On the clock that Trace's times are compared on
  std::vector<bool> fused;                // by cell: half of an overlapped pair
  std::vector<TheoryStep> steps;          // by step, then replica
  std::vector<int32_t> outliers;          // steps left out of the means (PipelineSums::outliers), ascending

  bool known() const { return !schedule.empty(); }
  bool has(size_t cell) const { return cell < start_ns.size() && start_ns[cell] != kNoTheory; }
};

// Warm-up lasts from a rank's first compute cell to its first backward (B or I), cool-down from the end of its last
// forward (no earlier than that) to the end of its last compute cell; steady is between. A rank without backwards, or
// without forwards, has no phases.
struct RankPhases {
  int32_t step = 0, part = 0;
  int64_t start_ns = 0, steady_ns = 0, cool_down_ns = 0, end_ns = 0;
};
std::vector<RankPhases> rank_phases(const Trace& trace);  // by step, then part. Expects sorted cells; O(cells)

// The same of a whole pipeline: first start, first backward of any rank, end of the last forward of any rank, last end.
// By step, then replica; on common time of an aligned trace, meaningless between ranks that share no clock.
struct PipelinePhases {
  int32_t step = 0, dp = 0;
  int64_t start_ns = 0, steady_ns = 0, cool_down_ns = 0, end_ns = 0;
};
std::vector<PipelinePhases> pipeline_phases(const Trace& trace, const std::vector<RankPhases>& ranks);

}  // namespace stageline
