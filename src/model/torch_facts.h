// The facts of a rank of a PyTorch profiler trace besides its slices: its device, the version of torch that wrote it,
// counts.
#pragma once

#include "model/trace.h"

namespace stageline {

// Returns a top-level member of the JSON as written; "" when there is none. If two have one name, the last counts.
std::string_view meta_json(const Part& part, std::string_view key);

// Returns the device's name, "NVIDIA H100 80GB HBM3", from deviceProperties at Part::device; "" when the trace does not
// say.
std::string device_name(const Part& part);
// Returns the whole entry, in one line and without tabs: {"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9}.
std::string device_json(const Part& part);

// Returns the versions of PyTorch that may have written the trace: "1.8–1.11", "1.12–2.2", "2.3", "2.4–2.6", "2.4+",
// "2.7–2.10", "2.11+", "2.14+", "2.15+"; "" when it was none of them. Each range is recognised by fields that only its
// versions write (docs/formats/kineto.md). O(slices).
std::string torch_era(const Trace& trace, const Part& part);

// Returns the number in "ProfilerStep#12" or "ProfilerStep # 12", 12; −1 for other names.
int64_t profiler_step_number(std::string_view name);

// Whether the range was made around a call of a module (mstx's domain "Module").
bool is_module_range(const Trace& trace, const RangeFact& range);

// Returns a short name of a category for people: "kernels", "CPU operators", ….
std::string_view category_label(Category category);
inline constexpr size_t kCategoryCount = static_cast<size_t>(Category::kSpan) + 1;

// Counts of the slices that the trace's filters (--ranks, --steps, --range) leave.
struct SliceCounts {
  int64_t slices = 0, events = 0, marks = 0, memory = 0, counter_values = 0, links = 0;
  ByEnum<Category, int64_t, kCategoryCount> by_category{};
  int64_t start_ns = 0, end_ns = 0;  // first start and last end of these slices; 0 and 0 when there are none
  int64_t device_streams = 0;
  int64_t message_kernels = 0, collective_kernels = 0;  // kernels that communicate: sends and receives, and the others
  std::vector<size_t> parts;                            // the ranks asked for
  std::vector<int64_t> steps;                           // the distinct ProfilerStep numbers asked for, ascending
};
SliceCounts count_slices(const Trace& trace);

// Returns the first start of the whole run, whatever the filters leave: --range counts from here. 0 without slices.
int64_t first_start_ns(const Trace& trace);

// Reads how a rank of an Ascend profile was recorded, from Part::metadata.

struct AscendSizes {  // the sizes in "distributed_args"; 0 when they are not given
  int64_t tp = 0, cp = 0, dp = 0, pp = 0, ep = 0, world = 0;
};
AscendSizes ascend_sizes(const Part& part);

// The level of recording: "Level_none", "Level0", "Level1" or "Level2"; "" when profiler_info does not say.
std::string ascend_level(const Part& part);
// The version of the database's schema, "1.2.0"; "" when META_DATA does not say.
std::string ascend_schema(const Part& part);

}  // namespace stageline
