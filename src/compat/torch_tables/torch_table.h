// The table that torch.profiler prints, character for character: prof.key_averages(…).table(…) of torch 2.13 to 2.15.
//
// torch adds up microseconds as doubles, counted from the start of the capture. Averages over 2, 4, … calls often lie
// exactly between two printable numbers, and then the rounding error decides which is printed. So this file adds up as
// torch does.
#pragma once

#include "profile/operator_groups.h"

namespace stageline::operators {

// The values of --sort-by, under torch's names and under our columns' names.
enum class SortKey : uint8_t {
  kNone,
  kName,
#define SORT_KEY(key, ...) key,
#include "compat/torch_tables/sort_keys.def"
};

struct TorchTableOptions {
  SortKey sort = SortKey::kNone;      // kNone keeps the order of first occurrence
  int64_t row_limit = 100;            // below 0 for all rows
  int64_t max_src_column_width = 75;  // INT64_MAX for no limit
  int64_t max_name_column_width = 55;
  int64_t max_shapes_column_width = 80;
  bool top_level_events_only = false;
  std::optional<std::string> header;
  std::string time_unit;          // s, ms or us; "" gives each value a unit of its own
  bool old_memory_units = false;  // "953.67 Mb" as torch printed up to 2024, instead of "953.67 MB"
  bool profile_memory = false, with_flops = false;
  std::string use_device;  // "cuda", "xpu", …; "" when only the host was profiled
};

// Returns an empty text when there are no events, as torch does. O(events · log events).
std::string torch_table(const Part& part, const Trace& trace, const FunctionNames& names, const OperatorGroups& groups,
                        const GroupOptions& grouping, const TorchTableOptions& options);

}  // namespace stageline::operators
