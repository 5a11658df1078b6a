// The causes of a run, and what is left of a step without them.
#pragma once

#include "diagnosis/causes/long_steps.h"

namespace stageline {

struct CauseList {
  // They cost at least kMinLost of the step, and more than noise; sorted by price.best_ns().
  std::vector<Cause> causes;
  // Mean period: from one step's start to the next one's. Long gaps are left out, and so are long steps except those
  // that the causes explain.
  double step_ns = 0;
  double gap_ns = 0;                 // the part of step_ns between steps
  double error_ns = 0;               // standard error of that mean
  double wall_ns = 0;                // mean period of all steps, including long ones
  int64_t steps = 0;                 // steps without the outliers
  int64_t mean_of_steps = 0;         // steps that step_ns is the mean of: those, and long ones that the causes explain
  std::vector<LongStep> long_steps;  // outliers that the causes do not explain, by step
  std::vector<LongStep> uneven;      // of two or three steps, one that is far longer than the shortest; at most one
  bool evens_out = false;            // two or three steps take nearly the same time without the causes
  int64_t all_steps = 0;             // including long ones
  int32_t first_step = 0;
  std::vector<int32_t> step_numbers;  // for each step of the graph its number; Cause::course has the same order
  // step_ns = schedule_ns + together_ns + the sum of these; without the part of together_ns that only a few steps lost.
  std::vector<AccountLine> left;
  // The gain without messages, all else unchanged, and its standard error. It includes what other causes name of
  // messages.
  double messages_ns = 0, messages_error_ns = 0;
  double schedule_ns = 0;  // what compute and the schedule's own waiting take, with equal stages and no messages
  // Causes that others hide: they cost time only once those are gone. lost_ns is of such a step; the largest first.
  std::vector<Cause> hidden;
  std::vector<Cause> doubtful;  // causes that cost as much but may be noise with so few steps; by lost_ns
  // Gain without any of the causes; for those outside the replay (order, time between steps) their lost_ns is added.
  double together_ns = 0;
  double together_error_ns = 0;  // its standard error over steps; NaN with one step
  bool unpriced = false;         // the run cannot be replayed: causes are slow compute, and none has a cost
  bool not_analysable = false;   // true: nothing was looked for, because of RunCoverage::not_analysable()
  bool replicas_unread = false;  // whether some replicas were not read
};

}  // namespace stageline
