// The table that torch.profiler prints, character for character: prof.key_averages(…).table(…) of torch 2.13.
//
// torch adds up microseconds as doubles, counted from the start of the capture; averages over 2, 4, … calls often lie
// exactly between two printable numbers, and the rounding error decides. So this file adds up as torch does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "profile/operator_groups.h"

namespace stageline::operators {

// What --sort-by may say, by torch's names and our columns' alike.
enum class SortKey : uint8_t {
  kNone,
  kName,
  kCount,
  kHostMean,
  kDeviceMean,
  kHost,
  kSelfHost,
  kDevice,
  kSelfDevice,
  kHostBytes,
  kSelfHostBytes,
  kDeviceBytes,
  kSelfDeviceBytes,
  kFlops,
};

struct TorchTableOptions {
  SortKey sort = SortKey::kNone;  // none: in order of first occurrence
  int64_t row_limit = 100;        // below 0: all
  int64_t max_src_column_width = 75;
  int64_t max_name_column_width = 55;
  int64_t max_shapes_column_width = 80;
  bool top_level_events_only = false;
  std::optional<std::string> header;
  std::string time_unit;          // s, ms, us; "": each value's own
  bool old_memory_units = false;  // "953.67 Mb" as torch printed up to 2024, else "953.67 MB"
  bool profile_memory = false, with_flops = false;
  std::string use_device;  // "cuda", "xpu", …; "": only the host was profiled
};

// Empty when there are no events, as torch prints it. O(events · log events).
std::string torch_table(const Part& part, const Trace& trace, const FunctionNames& names, const OperatorGroups& groups,
                        const GroupOptions& grouping, const TorchTableOptions& options);

}  // namespace stageline::operators
