// Two runs, operator by operator. Definitions: docs/analyses/trace-diff.md.
#pragma once

#include "analyses/analysis.h"
#include "model/torch_view.h"

namespace stageline {

enum class DeviceSide : uint8_t { kAll, kHost, kDevice };

struct DiffOptions {
  std::vector<int32_t> control_ranks, test_ranks;  // empty: the default
  std::vector<int32_t> control_steps, test_steps;
  DeviceSide side = DeviceSide::kAll;
  bool short_names = false;
  bool include_last_step = false;
};

// HTA's TraceDiff: counts and sums of durations by name, parents and children alike.
Result<AnalysisResult> hta_trace_diff(const AnalysisInput& input, const DiffOptions& options);
// Own time and whole time by cleaned name and category, steps aligned by position.
Result<AnalysisResult> exact_trace_diff(const AnalysisInput& input, const DiffOptions& options);

}  // namespace stageline
