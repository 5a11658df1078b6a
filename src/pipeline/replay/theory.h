// The times of the recognised schedule, cell by cell, with this run's own mean durations.
//
//   fact     ▐0▐▐1▐   ▐▐▐▐0▐▐▐▐ ▐2▐ …      each F, B, I, W, F&B of a (stage, chunk) takes its mean over the run,
//                                          or of steps at another pace the mean times that;
//   theory   ▐0▐▐1▐▐▐▐0▐▐▐▐▐2▐ …           messages take no time; replayed by pipeline/replay/replay
//
// Times are common times. Each step of each replica starts where its own first cell did, so a step that came late or
// took long does not move any other.
#pragma once

#include "model/theory.h"
#include "pipeline/order/recognise.h"
#include "pipeline/order/schedule_places.h"
#include "pipeline/replay/order_graph.h"
#include "pipeline/replay/schedule_numbers.h"
#include "pipeline/sums/pipeline_sums.h"
#include "pipeline/sums/stage_costs.h"

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

// Finds how long ranks would wait under the recognised schedule if every stage cost the same and messages took no time.
// Returns the mean over ranks of span bubble ÷ span. It replays the best candidate at its own sizes with the median
// stage's mean costs of F, B, I, W and F&B; an unmeasured F&B costs F + B. Returns NaN if no schedule is recognised, if
// a cost that its cells need was not measured, or if it has more than kMaxIdealCells cells. O(cells of the schedule).
double ideal_bubble(const Recognition& recognition, const std::vector<StageCost>& costs);

// Returns a sentence that compares `measured`, the share of the pipeline's span that ranks wait, with the recognised
// schedule's own share. Where none is recognised, it compares with the formula of 1F1B; with several chunks or split
// backwards, with nothing.
Text bubble_words(const Trace& trace, const std::vector<StageCost>& costs, int64_t steps, double measured,
                  const Recognition& recognition);

inline constexpr int64_t kMaxIdealCells = int64_t{1} << 21;

// Puts a pipeline's own units into the order of the recognised schedule.
class ScheduleSequences {
 public:
  // `theory` must outlive it.
  explicit ScheduleSequences(const TheoryRun& theory);

  struct Sequence {
    bool known = false;           // every unit has a place in the schedule, and the schedule's order can run
    bool as_it_ran = false;       // the lists are in the schedule's order already
    std::vector<uint32_t> order;  // units, each after everything it waits for
  };
  // Returns the sequence for the graph of theory.lists [first, last), which are one step and replica. Units that the
  // schedule runs as one cell, and the run did not, keep their order. O(units log units).
  Sequence of(const OrderGraph& graph, size_t first, size_t last) const;

 private:
  const TheoryRun& theory_;
  std::vector<SchedulePlaces> places_;  // for each of TheoryRun::sizes
};

}  // namespace stageline
