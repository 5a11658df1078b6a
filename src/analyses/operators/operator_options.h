// What the operators analysis may be asked, read and checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "analyses/analysis.h"
#include "compat/torch_tables/torch_table.h"
#include "profile/operator_groups.h"

namespace stageline::operators {

// "self_cuda_time_total" → kSelfDevice. Errors: kUsage with the list.
Result<SortKey> sort_key(std::string_view name);

struct Options {
  GroupOptions grouping;
  TorchTableOptions torch;
  SortKey sort = SortKey::kNone;
  int64_t row_limit = -1;
  bool top_level_events_only = false;
};

// Errors: kUsage naming the option. Torch's own options are refused without --format torch.
Result<Options> read_options(const AnalysisInput& input);

// A top-level member of the trace that says an option of the profiler was on: "profile_memory", "with_flops".
bool says(const Trace& trace, std::string_view key);

}  // namespace stageline::operators
