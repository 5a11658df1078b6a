// CellMark: pipeline work as the host saw it, whether found by names (torch_marks.h) or inferred (infer_cells.h).
#pragma once

#include <cstdint>

#include "model/trace.h"

namespace stageline {

// One piece of pipeline work on the host. An overlapped forward and backward are two marks with the same times and the
// same slice.
struct CellMark {
  uint32_t part = 0;          // index of Trace::parts
  uint32_t lane = 0;          // lane of the part: the thread that the work ran on
  uint32_t slice = kNoSlice;  // the annotation, frame or operator that shows the work; a click on the cell leads there
  int64_t start_ns = 0;       // on the host's clock
  int64_t end_ns = 0;         // never before start_ns
  CellKind kind = CellKind::kOther;
  int32_t stage = kUnknown;  // virtual stage, 0 … p·v − 1, where the source names it
  int32_t chunk = kUnknown;  // the rank's chunk, where the source names that and no virtual stage
  int32_t micro_batch = kUnknown;
  int32_t step = kUnknown;  // set only where the source names a step; else ProfilerStep or repetition decides later
  bool piece = false;       // one of several slices of the same work, so it must not be counted as a micro-batch
};

}  // namespace stageline
