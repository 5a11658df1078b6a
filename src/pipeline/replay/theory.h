// What the recognised schedule promises with this run's own mean durations, cell by cell.
//
//   fact     ▐0▐▐1▐   ▐▐▐▐0▐▐▐▐ ▐2▐ …      each F, B, I, W, F&B of a (stage, chunk) takes its mean over the run,
//                                          or of steps at another pace the mean times that;
//   theory   ▐0▐▐1▐▐▐▐0▐▐▐▐▐2▐ …           messages take no time; replayed by pipeline/replay/replay
//
// Times are common time of an aligned trace. Each step of each replica starts where its own first cell did, so a step
// that came late or was long moves no other.
#pragma once

#include <map>
#include <optional>

#include "model/pipeline_sums.h"
#include "model/theory.h"
#include "pipeline/order/rank_lists.h"
#include "pipeline/order/recognise.h"
#include "pipeline/replay/schedule_numbers.h"

namespace stageline {

// The replay for steps with so many micro-batches.
struct TheorySize {
  Schedule schedule;
  std::vector<std::vector<ReplayedCell>> times;  // [stage][place]
  ScheduleNumbers numbers;
};

struct TheoryRun {
  Recognition recognition;
  RankLists lists;  // labels numbered as the schedule counts; empty without theory
  Theory theory;
  std::vector<TheorySize> sizes;
  std::vector<int32_t> size_of;                   // by list: index into sizes; kUnknown
  std::map<size_t, ScheduleNumbers> own_numbers;  // by index of theory.steps: of steps replayed at their own pace

  const ScheduleNumbers& numbers(size_t step, const TheorySize& size) const {
    const auto own = own_numbers.find(step);
    return own == own_numbers.end() ? size.numbers : own->second;
  }

  const TheorySize* size(size_t list) const {
    return size_of[list] == kUnknown ? nullptr : &sizes[static_cast<size_t>(size_of[list])];
  }
};

// Expects sorted cells. Means leave out PipelineSums::outliers; a step whose stages differ from them by more than their
// noise is replayed at its own pace (theory_pace.h). A kind that the schedule has and the run has not is made of
// others: B = I + W, F&B = F + B. Never fails: without a recognised schedule, without durations of some stage, or where
// jobs are recorded in pieces, theory.why_not says so. O(cells) beyond recognise().
TheoryRun theory_of(const Trace& trace, const PipelineSums& sums);

}  // namespace stageline
