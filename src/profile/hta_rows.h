// HTA's loading, rule by rule, from the exact columns: torch_view's other mode.
// Definitions: docs/analyses/hta-loading.md.
#pragma once

#include "profile/torch_rows.h"

namespace stageline {

// Start and duration in ns after HTA's rounding (ceil, floor) where the part needs it.
void hta_round(const Part& part, int64_t& start_ns, int64_t& dur_ns);

// Facts of the run, and the ranks as HTA numbers them. Returns which parts HTA holds: of several with one
// rank the last, none without rows.
std::vector<bool> hta_run_facts(TorchRun& run);
TorchRank hta_rank_rows(const TorchRun& run, size_t part);
void hta_index_rows(TorchRank& rank);  // fills row_of_index and partner

// HTA's tables hold events that have a category and a duration of their own, without the profile's bar.
bool is_hta_row(const Trace& trace, const Slices& slices, size_t slice);
// HTA's test of a device row: an argument stream and a correlation, or a wait by name.
bool hta_gpu_side(const TorchRun& run, const TorchRow& row);
// A time as the file's decimal text of microseconds reads as a double.
double hta_raw_us(int64_t ns);

}  // namespace stageline
