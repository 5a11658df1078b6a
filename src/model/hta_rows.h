// HTA's loading, rule by rule, from the exact columns. Used by torch_view only.
// Definitions: docs/analyses/hta-loading.md.
#pragma once

#include "model/torch_view.h"

namespace stageline {

// "ProfilerStep#12", "ProfilerStep # 12" → 12; −1 for other names.
int64_t hta_step_number(std::string_view name);
// Start and duration in ns after HTA's rounding (ceil, floor) where the part needs it.
void hta_round(const Part& part, int64_t& start_ns, int64_t& dur_ns);

// Facts of the run, and the ranks as HTA numbers them. Returns which parts HTA holds: of several with one
// rank the last, none without rows.
std::vector<bool> hta_run_facts(TorchRun& run);
TorchRank hta_rank_rows(const TorchRun& run, size_t part);
void hta_index_rows(TorchRank& rank);  // fills row_of_index and partner

}  // namespace stageline
