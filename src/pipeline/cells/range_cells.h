// Makes cells from ranges that say what they are and have a device side (Ascend's mstx; docs/formats/ascend-cells.md).
//
//   ranges ──rules──▶ rows on the device ──▶ layout ──▶ steps ──▶ labels, proven ──▶ messages ──▶ trace.cells
//   (range_rows.h)                       (rank_layout.h) (range_steps.h) (range_labels.h) (range_messages.h)
//
// A cell lasts as long as its range does on the device. An overlapped forward and backward, which is one range, becomes
// two cells with the times and the slice of that range.
#pragma once

#include "model/trace.h"
#include "pipeline/cells/cell_rules.h"
#include "pipeline/cells/range_labels.h"
#include "pipeline/cells/torch_cells.h"

namespace stageline {

// The fate of the rows, for callers that need more than the cells (pp-chart shows phases, and why a step leaves its
// schedule).
struct RangeFindings {
  RangeRows rows;
  RowLists lists;
  RangeLabels labels;
};

// Fills trace.cells, Part::stage and dp, trace.pipeline_stages and diagnostics ("cells.from_ranges", "cells.schedule",
// "cells.off_schedule.rank_N", "cells.empty_pop", "cells.no_device", …). Returns false, having added diagnostics at
// most, where no range is pipeline work. `findings` may be nullptr.
bool find_range_cells(Trace& trace, const CellRules& rules, const TorchCellOptions& options,
                      RangeFindings* findings = nullptr);

}  // namespace stageline
