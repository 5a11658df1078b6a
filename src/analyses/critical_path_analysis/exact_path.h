// Finds the default mode's path, exact to the nanosecond. Definitions: docs/analyses/critical-path-analysis.md.
#pragma once

#include "profile/path_graph.h"

namespace stageline {

PathGraph exact_path_graph(const TorchRun& run, const TorchRank& rank, const PathOptions& options);

}  // namespace stageline
