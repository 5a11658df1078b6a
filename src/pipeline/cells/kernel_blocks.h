// Forward and backward blocks where nothing marks them: from what ran on the device, for profiles that have no more
// (Ascend's text exports without markers).
//
//   rank 0, stage 0    |kkkk kkkk| ▒ |kkkk kkkk| ▒▒▒▒▒▒▒▒▒▒▒ |kGkk kGkk| ▒▒▒▒▒▒ |kGkk kGkk| dp |o|      ▒ P2P of the
//                       F0          F1         (waits)         B0               B1             O        pipeline's
//                       group
//   rank 2, stage 1    ▒▒▒▒▒▒▒▒▒▒▒▒|kkkk kkkk|kGkk kGkk| ▒▒▒ |kkkk kkkk|kGkk kGkk|
//                                   F0        B0                F1        B1
//
// A run is the kernels between two operations of the pipeline's P2P. It is backward work where it has gradient kernels
// (G: names or owners with "Grad" or "Backward"), else forward work. The last stage has no message between the two:
// backward begins at the first gradient kernel; on the first stage, backward may be followed by a forward: it ends
// with the last one. Micro-batches are numbered only where every stage's order is that of a known schedule and no
// block starts before the one that feeds it; what is not proven stays unknown and is counted.
#pragma once

#include "model/trace.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {

// Fills trace.cells, Part::stage and dp, trace.pipeline_stages. False, and nothing but diagnostics touched, when stages
// are not known, there is no P2P of a pipeline's group, it runs beside the kernels, or no gradient kernel is there.
// Diagnostics "cells.from_kernels", "cells.kernels_unproven", "cells.kernels_overlap", …. O(slices log slices).
bool find_kernel_blocks(Trace& trace, const RankLayoutOptions& options);

}  // namespace stageline
