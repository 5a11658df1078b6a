// Finds pipeline cells in slices, in four ways: by names or inferred (torch_cells, infer_cells), in ranges on a device
// (range_cells), and by kernels alone (kernel_blocks). And what cannot be a cell.
#pragma once

#include "pipeline/cells/marks.h"
#include "pipeline/cells/range_rows.h"

namespace stageline {

// Cells of PyTorch profiler traces: pipeline work found in annotations and Python frames by rules
// (pipeline/cells/cell_rules.h), or inferred from messages where nothing is named.
//
//   names ──rules──▶ marks ──▶ layout ──▶ steps, numbers ──▶ device intervals ──▶ trace.cells
//                      ▲        (rank_layout.h)               (device_spans.h)
//   messages ──infer───┘
//
// A mark is what the host saw: a stretch of one thread that did one piece of pipeline work. From there on
// it is the same whoever found it.

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
  InferMarks infer = nullptr;  // infer_cells(); nullptr for rules only
};

// Fills trace.cells, Part::stage and dp, trace.pipeline_stages and the diagnostics "cells.from_annotations" or
// "cells.inferred", which name the source of the cells. Returns true when there are cells, and otherwise adds only
// diagnostics. Names that are used outside of pipelines too ("Forward 3") need further evidence. The ranks are known to
// be two stages or more, a frame of a pipeline engine exists, or micro-batches are numbered and ranks send messages.
// O(slices + marks log marks).
bool find_torch_cells(Trace& trace, const CellRules& rules, const TorchCellOptions& options);

// Infers pipeline work where nothing is annotated, from autograd's sequence numbers, sends and receives (host_work.h),
// and from the ranks to which results were sent.
//
//   rank 0   F . . F . .        sends its gradients to nobody, so it is the first stage: its k-th F is micro-batch k
//             \.    \.          the k-th forward that rank 0 sends to rank 1 feeds the k-th forward of rank 1
//   rank 1      F .   F .       whose gradient goes back to rank 0: same micro-batch, next stage
//
// At the bend of a V, two neighbouring stages are on one rank, and a result is kept instead of sent. There the k-th
// kept result feeds the k-th forward of the same rank that sends no gradient. If peers are not recorded (gloo without
// record_shapes), the ranks are assumed to form a ring in the order of their numbers. This is kept only if every count,
// order and path agrees with it. Work that does not fit stays kUnknown and is counted.
// Returns marks of the compute cells of all parts, with stage and micro-batch where these follow. The result is empty
// when no part has sends, receives and backward work. Diagnostics "cells.inferred_*" say what the marks rest on and
// what stayed unknown. O(slices + work log work).
std::vector<CellMark> infer_cells(const Trace& trace, Diagnostics& diagnostics);

// Makes cells from ranges that say what they are and have a device side (Ascend's mstx; docs/formats/ascend-cells.md).
//
//   ranges ──rules──▶ rows on the device ──▶ layout ──▶ steps ──▶ labels, proven ──▶ messages ──▶ trace.cells
//   (range_rows)                         (rank_layout)  (range_steps)  (range_labels)  (range_messages)
//
// A cell lasts as long as its range does on the device. An overlapped forward and backward, which is one range, becomes
// two cells with the times and the slice of that range.

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

// Finds forward and backward blocks where nothing marks them, from what ran on the device. For profiles that have
// nothing else (Ascend's text exports without markers).
//
//   rank 0, stage 0    |kkkk kkkk| ▒ |kkkk kkkk| ▒▒▒▒▒▒▒▒▒▒▒ |kGkk kGkk| ▒▒▒▒▒▒ |kGkk kGkk| dp |o|      ▒ P2P of the
//                       F0          F1         (waits)         B0               B1             O        pipeline's
//                       group
//   rank 2, stage 1    ▒▒▒▒▒▒▒▒▒▒▒▒|kkkk kkkk|kGkk kGkk| ▒▒▒ |kkkk kkkk|kGkk kGkk|
//                                   F0        B0                F1        B1
//
// A run is the kernels between two operations of the pipeline's P2P group. It is backward work where it has gradient
// kernels (G: kernels or owning operators with "Grad" or "Backward" in their name), else forward work. Two places need
// a cut that no message marks. On the last stage a forward is followed at once by its backward, which starts at the
// first gradient kernel. On the first stage a backward may be followed at once by the next forward, which starts after
// the last gradient kernel. Micro-batches are numbered only if the order of every stage is that of a known schedule,
// and no block starts before the one that feeds it. Unproven numbers stay unknown and are counted.
// Fills trace.cells, Part::stage and dp, and trace.pipeline_stages. Returns false, having added only diagnostics, if
// the stages are unknown or there is no gradient kernel. It also does so if no P2P of a pipeline's group was recorded
// or it overlaps the kernels. Diagnostics are "cells.from_kernels", "cells.kernels_unproven", "cells.kernels_overlap",
// …. O(slices log slices).
bool find_kernel_blocks(Trace& trace, const RankLayoutOptions& options);

// Finds cells whose timestamps contradict those of their own rank: a wrong unit, an end that was never written, a
// timestamp of another clock. One such row can make a step appear to take three years.
// Takes cells out that cannot have run when they say, and counts each as a loss, "cells.impossible_times":
//
// - A rank does its steps one after another. This is so when three quarters of its cells of one step are over before
//   three quarters of the next one's start. Then a forward or backward is not of its step in two cases: it still
//   runs when all of its rank's next step is done, or it started before any cell of the previous step. So rows are
//   judged only with others of their step: a rank that hangs, or whose clock jumps, moves everything that comes after.
// - All ranks' steps together last at most 2^60 ns (36 years), so that sums of them are exact. Otherwise cells are
//   dropped that take more than a step's share of it, or are further than that from the middle of their step.
//
// Slices stay, and so does everything that is drawn of them. Cells must be sorted. O(cells).
void drop_impossible_times(Trace& trace);

}  // namespace stageline
