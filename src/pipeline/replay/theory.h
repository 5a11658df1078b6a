// The times of the recognised schedule, cell by cell, with this run's own mean durations.
//
//   fact     ▐0▐▐1▐   ▐▐▐▐0▐▐▐▐ ▐2▐ …      each F, B, I, W, F&B of a (stage, chunk) takes its mean over the run,
//                                          or of steps at another pace the mean times that;
//   theory   ▐0▐▐1▐▐▐▐0▐▐▐▐▐2▐ …           messages take no time; replayed by pipeline/replay/replay
//
// Times are common times. Each step of each replica starts where its own first cell did, so a step that came late or
// took long does not move any other.
#pragma once

#include <map>

#include "model/theory.h"
#include "pipeline/order/rank_lists.h"
#include "pipeline/order/recognise.h"
#include "pipeline/replay/schedule_numbers.h"
#include "pipeline/sums/pipeline_sums.h"

namespace stageline {

// The replay for steps with one number of micro-batches.
struct TheorySize {
  Schedule schedule;
  std::vector<std::vector<ReplayedCell>> times;  // index: [stage][place]
  ScheduleNumbers numbers;
};

struct TheoryRun {
  Recognition recognition;
  RankLists lists;  // with labels numbered as the schedule counts; empty when there is no theory
  Theory theory;
  std::vector<TheorySize> sizes;
  std::vector<int32_t> size_of;                   // for each list its index into sizes; kUnknown
  std::map<size_t, ScheduleNumbers> own_numbers;  // for steps replayed at their own pace, by index into theory.steps

  const ScheduleNumbers& numbers(size_t step, const TheorySize& size) const {
    const auto own = own_numbers.find(step);
    return own == own_numbers.end() ? size.numbers : own->second;
  }

  const TheorySize* size(size_t list) const { return size_of[list] == kUnknown ? nullptr : &sizes[size_of[list]]; }
};

// Expects sorted cells. Means leave out PipelineSums::outliers. A step whose stages differ from the means by more than
// their noise is replayed at its own pace (theory_pace.h). A kind that the schedule has and the run lacks is made of
// others: B = I + W, F&B = F + B. Never fails: without a recognised schedule, without durations for some stage, or
// where jobs are recorded in pieces, theory.why_not gives the reason. O(cells) beyond recognise().
TheoryRun theory_of(const Trace& trace, const PipelineSums& sums);

}  // namespace stageline
