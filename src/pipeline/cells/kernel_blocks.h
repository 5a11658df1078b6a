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
#pragma once

#include "model/trace.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {

// Fills trace.cells, Part::stage and dp, and trace.pipeline_stages. Returns false, having added only diagnostics, if
// the stages are unknown or there is no gradient kernel. It also does so if no P2P of a pipeline's group was recorded
// or it overlaps the kernels. Diagnostics are "cells.from_kernels", "cells.kernels_unproven", "cells.kernels_overlap",
// …. O(slices log slices).
bool find_kernel_blocks(Trace& trace, const RankLayoutOptions& options);

}  // namespace stageline
