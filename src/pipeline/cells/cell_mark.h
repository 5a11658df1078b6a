// What the host saw of pipeline work, whoever found it: by names (torch_marks.h) or inferred (infer_cells.h).
#pragma once

#include <cstdint>

#include "model/trace.h"

namespace stageline {

// One piece of pipeline work as the host saw it. An overlapped forward and backward are two marks with the same
// times and slice.
struct CellMark {
  uint32_t part = 0;          // index of Trace::parts
  uint32_t lane = 0;          // of the part: the thread it ran on
  uint32_t slice = kNoSlice;  // annotation, frame or operator that says it, for click-through
  int64_t start_ns = 0;       // on the host
  int64_t end_ns = 0;         // not before start
  CellKind kind = CellKind::kOther;
  int32_t stage = kUnknown;  // virtual stage, 0 … p·v − 1, where the source names it
  int32_t chunk = kUnknown;  // of the rank, where the source names that instead
  int32_t micro_batch = kUnknown;
  int32_t step = kUnknown;  // only where the source names one; else ProfilerStep or repetition decides
  bool piece = false;       // one of several slices of a piece of work: never counted as a micro-batch
};

}  // namespace stageline
