#include "analyses/operators/operator_options.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "model/torch_facts.h"

namespace stageline::operators {
namespace {

// Limit for a row, so that the table's size stays linear in the number of events.
constexpr int64_t kMaxStackEntries = 100;

// These options affect torch's table alone and are ignored otherwise.
constexpr std::array<std::string_view, 6> kTorchOnly = {
    "time-unit",        "header", "max-src-column-width", "max-name-column-width", "max-shapes-column-width",
    "memory-unit-style"};

Status read_torch_options(const AnalysisInput& input, TorchTableOptions& torch) {
  const AnalysisOptions& given = input.options;
  for (const std::string_view name : kTorchOnly)
    if (!input.foreign && given.has(name))
      return make_error(ErrorCode::kUsage, "--" + std::string(name) + " shapes torch's own table",
                        "add --format torch; ours has raw values in csv and json");
  constexpr int64_t kWidest = 100'000;
  for (const auto& [name, width] : {std::pair{"max-src-column-width", &torch.max_src_column_width},
                                    {"max-name-column-width", &torch.max_name_column_width},
                                    {"max-shapes-column-width", &torch.max_shapes_column_width}}) {
    if (given.text(name) == "none") {
      *width = INT64_MAX;
      continue;
    }
    TRY_OK(take(given.integer(name, *width, 0, kWidest), *width));
  }
  if (given.has("header")) torch.header = given.text("header");
  torch.time_unit = given.text("time-unit");
  torch.old_memory_units = given.text("memory-unit-style", "GB") == "Gb";
  return {};
}

// "self_cuda_time_total" gives kSelfDevice. Errors: kUsage with the list of keys.
Result<SortKey> sort_key(std::string_view name) {
  if (name.empty()) return SortKey::kNone;
  std::string key(name);
  std::ranges::replace(key, '-', '_');
  for (const std::string_view device : {"cuda", "xpu", "privateuse1"})
    for (size_t at = key.find(device); at != std::string::npos; at = key.find(device, at + 6))
      key.replace(at, device.size(), "device");
  static constexpr std::array<std::pair<std::string_view, SortKey>, 24> kKeys = {{
      {"cpu_time_total", SortKey::kHost},
      {"self_cpu_time_total", SortKey::kSelfHost},
      {"device_time_total", SortKey::kDevice},
      {"self_device_time_total", SortKey::kSelfDevice},
      {"cpu_time", SortKey::kHostMean},
      {"device_time", SortKey::kDeviceMean},
      {"count", SortKey::kCount},
      {"cpu_memory_usage", SortKey::kHostBytes},
      {"self_cpu_memory_usage", SortKey::kSelfHostBytes},
      {"device_memory_usage", SortKey::kDeviceBytes},
      {"self_device_memory_usage", SortKey::kSelfDeviceBytes},
      {"flops", SortKey::kFlops},
      {"key", SortKey::kName},
      {"name", SortKey::kName},
      {"host_ns", SortKey::kHost},
      {"self_host_ns", SortKey::kSelfHost},
      {"device_ns", SortKey::kDevice},
      {"self_device_ns", SortKey::kSelfDevice},
      {"host_mean_ns", SortKey::kHostMean},
      {"device_mean_ns", SortKey::kDeviceMean},
      {"host_bytes", SortKey::kHostBytes},
      {"self_host_bytes", SortKey::kSelfHostBytes},
      {"device_bytes", SortKey::kDeviceBytes},
      {"self_device_bytes", SortKey::kSelfDeviceBytes},
  }};
  std::string list;
  for (const auto& [known, value] : kKeys) {
    if (key == known) return value;
    append_item(list, known);
  }
  return make_error(ErrorCode::kUsage, "--sort-by knows no \"" + std::string(name) + "\"",
                    "it knows " + list + "; cuda and xpu stand for device too");
}

}  // namespace

bool says(const Trace& trace, std::string_view key) {
  return std::ranges::any_of(trace.parts, [&](const Part& part) {
    const std::string_view json = meta_json(part, key);
    return json == "1" || json == "true";
  });
}

Result<Options> read_options(const AnalysisInput& input) {
  const AnalysisOptions& given = input.options;
  Options options;
  GroupOptions& grouping = options.grouping;
  const auto flag = [&](const char* name, bool fallback, bool& to) -> Status {
    TRY_OK(take(given.flag(name, fallback), to));
    return {};
  };
  grouping.events.as_torch = input.foreign;
  TRY_OK(flag("group-by-input-shape", false, grouping.by_input_shape));
  TRY_OK(flag("group-by-overload-name", false, grouping.by_overload_name));
  TRY_OK(flag("include-python-functions", false, grouping.events.python_frames));
  if (input.foreign) grouping.hide_frames = !std::exchange(grouping.events.python_frames, true);
  TRY_OK(flag("with-flops", says(*input.trace, "with_flops"), grouping.with_flops));
  TRY_OK(flag("top-level-events-only", false, options.top_level_events_only));
  TRY_OK(take(given.integer("group-by-stack-n", 0, 0, kMaxStackEntries), grouping.stack_entries));
  grouping.recorded_stacks = given.text("stacks", input.foreign ? "torch" : "rebuilt") == "torch";
  TRY_OK(take(given.integer("row-limit", input.foreign ? 100 : -1), options.row_limit));
  TRY_OK(take(sort_key(given.text("sort-by")), options.sort));
  TRY_OK(read_torch_options(input, options.torch));
  options.torch.sort = options.sort;
  options.torch.row_limit = options.row_limit;
  options.torch.top_level_events_only = options.top_level_events_only;
  options.torch.with_flops = grouping.with_flops;
  return options;
}

}  // namespace stageline::operators
