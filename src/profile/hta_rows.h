// torch_view's other mode: applies HTA's rules of loading, one by one, to the exact columns.
// Definitions: docs/analyses/hta-loading.md.
#pragma once

#include "profile/torch_rows.h"

namespace stageline {

// Rounds start and duration in ns as HTA does (ceil, floor), if it does so for this part.
void hta_round(const Part& part, int64_t& start_ns, int64_t& dur_ns);

// Finds facts of the run, and ranks as HTA numbers them. Returns which parts HTA holds: of several parts with one rank
// the last, and no part without rows.
std::vector<bool> hta_run_facts(TorchRun& run);
TorchRank hta_rank_rows(const TorchRun& run, size_t part);
void hta_index_rows(TorchRank& rank);  // fills row_of_index and partner

// Returns true for events that HTA's tables hold: those with a category and a duration of their own, except the bar of
// the whole profile.
bool is_hta_row(const Trace& trace, const Slices& slices, size_t slice);
// HTA's test for a device row: it has the argument stream and a correlation, or is a wait by its name.
bool hta_gpu_side(const TorchRun& run, const TorchRow& row);
// Returns a time as one gets it by reading the file's decimal text of microseconds as a double.
double hta_raw_us(int64_t ns);

}  // namespace stageline
