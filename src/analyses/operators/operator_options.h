// Reads and checks the options of the analysis operators.
#pragma once

#include <cstdint>
#include <string_view>

#include "analyses/analysis.h"
#include "compat/torch_tables/torch_table.h"
#include "profile/operator_groups.h"

namespace stageline::operators {

struct Options {
  GroupOptions grouping;
  TorchTableOptions torch;
  SortKey sort = SortKey::kNone;
  int64_t row_limit = -1;
  bool top_level_events_only = false;
};

// Errors: kUsage naming the option. Torch's own options are refused without --format torch.
Result<Options> read_options(const AnalysisInput& input);

// Returns true when a top-level member of the trace records that an option of the profiler was on: "profile_memory",
// "with_flops".
bool says(const Trace& trace, std::string_view key);

}  // namespace stageline::operators
