// What a rank of a PyTorch profiler trace says of itself besides its slices: device, era of the writer, counts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace stageline {

// A top-level member of the JSON as written; "" when there is none. Of two with one name the last counts.
std::string_view meta_json(const Part& part, std::string_view key);

// "NVIDIA H100 80GB HBM3", by deviceProperties and Part::device; "" when the trace does not say.
std::string device_name(const Part& part);

// Which PyTorch wrote it, by what only some versions write: "1.8–1.11", "1.12–2.2", "2.3", "2.4–2.6", "2.7–2.10",
// "2.11+"; "" when it was none. O(slices). Tell-tales: docs/formats/kineto.md.
std::string torch_era(const Trace& trace, const Part& part);

// "ProfilerStep#12", "ProfilerStep # 12" → 12; −1 for other names.
int64_t profiler_step_number(std::string_view name);

// A short name of a category for people: "kernels", "CPU operators", …
std::string_view category_label(Category category);
inline constexpr size_t kCategoryCount = static_cast<size_t>(Category::kSpan) + 1;

// Slices that the trace's filters (--ranks, --steps, --range) leave, and what they are.
struct SliceCounts {
  int64_t slices = 0, events = 0, marks = 0, memory = 0, counter_values = 0, links = 0;
  std::array<int64_t, kCategoryCount> by_category{};
  int64_t start_ns = 0, end_ns = 0;  // first start and last end of them; 0,0 without any
  int64_t device_streams = 0;
  int64_t message_kernels = 0, collective_kernels = 0;  // of kernels that communicate: sends and receives; the others
  std::vector<size_t> parts;                            // ranks asked for
  std::vector<int64_t> steps;                           // distinct ProfilerStep numbers asked for, ascending
};
SliceCounts count_slices(const Trace& trace);

// First start of the whole run, whatever was asked for: where --range counts from. 0 without slices.
int64_t first_start_ns(const Trace& trace);

}  // namespace stageline
