// Blocks of StepTaskInfo from the cells of a pipeline: every name is what a cell is known to be.
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
  int32_t micro_batches = 0;  // a step's; chunk c's micro-batch i is written c·m+i. 0: not known
  int32_t stages = 0;
};
// From the profile (pp_info), what the user said ("" and 0: nothing) and the cells themselves.
LabelPlan label_plan(const Trace& trace, const std::string& schedule, int32_t micro_batches);

struct CellLabels {
  StepTasks blocks;
  int64_t unlabelled = 0;            // whose micro-batch is not known: "F", "B", "W", "F+B"
  std::vector<std::string> remarks;  // where the first step that differs from DualPipeV's order does so, and why
};
// Blocks of one part, of all steps or one, by start. 1F1B and its kin: "3F", "3B", types 0 and 1; DualPipeV: the names
// and phases of dualpipev_rows.h, by what a block is and not by where it stands. `overlapped`: overlapped_pairs(cells).
// `cells`: those of the part, in the trace's order.
CellLabels label_cells(const Trace& trace, int32_t part, std::span<const uint32_t> cells,
                       const std::vector<uint32_t>& overlapped, const LabelPlan& plan, const int64_t* only_step);

}  // namespace stageline
