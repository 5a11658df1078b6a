// What the operators analysis may be asked, read and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analyses/analysis.h"
#include "analyses/operators/operator_groups.h"

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
// "self_cuda_time_total" → kSelfDevice. Errors: kUsage with the list.
Result<SortKey> sort_key(std::string_view name);

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
