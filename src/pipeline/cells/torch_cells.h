// Cells of PyTorch profiler traces: pipeline work found in annotations and Python frames by rules
// (pipeline/cells/cell_rules.h), or inferred from messages where nothing is named.
//
//   names ──rules──▶ marks ──▶ layout ──▶ steps, numbers ──▶ device intervals ──▶ trace.cells
//                      ▲        (rank_layout.h)               (device_spans.h)
//   messages ──infer───┘
//
// A mark is what the host saw: a stretch of one thread that did one piece of pipeline work. From there on
// it is the same whoever found it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/cell_mark.h"
#include "pipeline/cells/cell_rules.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {

enum class CellSource : uint8_t {
  kAuto,         // rules; where none matches, inference
  kOff,          // no cells: the trace stays a profile
  kAnnotations,  // rules only
  kInferred,     // inference only, even where work is named
};

// Returns the marks of every part, in any order. `trace` is as its reader left it, without cells.
using InferMarks = std::vector<CellMark> (*)(const Trace& trace, Diagnostics& diagnostics);

struct TorchCellOptions {
  CellSource source = CellSource::kAuto;
  RankLayoutOptions layout;
  InferMarks infer = nullptr;  // infer_cells() of pipeline/cells/infer_cells.h; nullptr for rules only
};

// Fills trace.cells, Part::stage and dp, trace.pipeline_stages and the diagnostics "cells.from_annotations" or
// "cells.inferred", which name the source of the cells. Returns true when there are cells, and otherwise adds only
// diagnostics. Names that are used outside of pipelines too ("Forward 3") need further evidence. The ranks are known to
// be two stages or more, a frame of a pipeline engine exists, or micro-batches are numbered and ranks send messages.
// O(slices + marks log marks).
bool find_torch_cells(Trace& trace, const CellRules& rules, const TorchCellOptions& options);

}  // namespace stageline
