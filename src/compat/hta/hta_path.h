// HTA's critical path: which edges HTA draws, and its longest path over them. Rules:
// docs/analyses/critical-path-analysis.md.
#pragma once

#include "profile/path_graph.h"
#include "profile/torch_rows.h"

namespace stageline {

PathGraph hta_path_graph(const TorchRun& run, const TorchRank& rank, const PathOptions& options);

}  // namespace stageline
