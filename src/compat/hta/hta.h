// HTA's own answers where its rules differ most from ours: critical path, comparison of two runs, stragglers.
#pragma once

#include "model/table.h"
#include "profile/path_graph.h"
#include "profile/torch_view.h"
#include "profile/trace_diff_options.h"

namespace stageline {

// Returns the edges that HTA draws, and its longest path over them. Rules: docs/analyses/critical-path-analysis.md.
PathGraph hta_path_graph(const TorchRun& run, const TorchRank& rank, const PathOptions& options);

// Compares two runs as HTA's TraceDiff does: counts and sums of durations by name, parents and children alike. Returns
// two tables, compare-traces and ops-diff. Definitions: docs/analyses/trace-diff.md. Errors: kBadInput with HTA's
// reasons.
Result<std::vector<Table>> hta_trace_diff(const Trace& control, const Trace& test, const DiffOptions& options);

// Returns HTA's potential stragglers in its order: ranks whose last long NCCL kernel starts late. `steps` are those
// that were given; none stands for all. Definitions: docs/analyses/potential-stragglers.md. Errors: kBadInput with
// HTA's reasons.
Result<std::vector<int32_t>> hta_stragglers(const TorchRun& run, const std::vector<int32_t>& steps, bool steps_given,
                                            int64_t candidates);

}  // namespace stageline
