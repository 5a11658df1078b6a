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
  kAnnotations,  // rules alone
  kInferred,     // inference alone, whatever is named
};

// Marks of every part, in any order. `trace` is as its reader left it: no cells.
using InferMarks = std::vector<CellMark> (*)(const Trace& trace, Diagnostics& diagnostics);

struct TorchCellOptions {
  CellSource source = CellSource::kAuto;
  RankLayoutOptions layout;
  InferMarks infer = nullptr;  // pipeline/cells/infer_cells.h's; none: rules alone
};

// Fills trace.cells, Part::stage and dp, trace.pipeline_stages and the diagnostics "cells.from_annotations" or
// "cells.inferred", which say by what evidence; true when there are cells. Nothing but diagnostics is touched when
// there is no pipeline: names that are in use elsewhere too ("Forward 3") count only where the ranks are known to be
// two stages or more, a frame of a pipeline engine is there, or micro-batches are numbered and ranks send messages.
// O(slices + marks log marks).
bool find_torch_cells(Trace& trace, const CellRules& rules, const TorchCellOptions& options);

// The rest of the way for marks: layout, steps, numbers, device intervals, cells. `number`: micro-batches that the
// source does not say are counted (the k-th of its kind and chunk in the step); else they stay unknown.
// True when there are cells.
bool cells_from_marks(Trace& trace, std::vector<CellMark> marks, const RankLayoutOptions& layout, bool number);

}  // namespace stageline
