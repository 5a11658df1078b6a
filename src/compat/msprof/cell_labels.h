// Makes blocks of StepTaskInfo from the cells of a pipeline; every name says what is known of the cell.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compat/msprof/step_tasks.h"
#include "model/trace.h"

namespace stageline {

struct LabelPlan {
  bool dualpipev = false;
  bool apart = false;         // nothing is overlapped: a forward and a backward stand for each pair
  int32_t micro_batches = 0;  // micro-batches of a step; micro-batch i of chunk c is written as c·m+i. 0 when not known
  int32_t stages = 0;
};
// Uses the profile (pp_info), the user's options ("" and 0 stand for nothing) and the cells themselves.
LabelPlan label_plan(const Trace& trace, const std::string& schedule, int32_t micro_batches);

struct CellLabels {
  StepTasks blocks;
  int64_t unlabelled = 0;            // blocks whose micro-batch is not known: "F", "B", "W", "F+B"
  std::vector<std::string> remarks;  // where the first step that differs from DualPipeV's order does so, and why
};
// Returns the blocks of one part in order of start, of all steps or of one. For 1F1B and similar schedules names are
// "3F" and "3B", with types 0 and 1. For DualPipeV they are the names and phases of dualpipev_rows.h, chosen by what a
// block is and not by where it stands. `overlapped` is overlapped_pairs(cells); `cells` are those of the part, in the
// trace's order.
CellLabels label_cells(const Trace& trace, int32_t part, std::span<const uint32_t> cells,
                       const std::vector<uint32_t>& overlapped, const LabelPlan& plan, const int64_t* only_step);

}  // namespace stageline
