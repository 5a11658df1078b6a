// Device work that a profiler lost, and how far the device's clock is behind the host's.
#pragma once

#include "model/trace.h"

namespace stageline {

// Launches whose work is missing. The call was recorded with a number, so the device was profiled too, but no device
// work has that number (its buffers overflowed, another profiler was attached, permissions were missing).
struct LostLaunches {
  // Slices, in order of lanes: all calls that launch a kernel or a graph, and those whose work is missing.
  std::vector<uint32_t> launches, lost;
};

// `category_of(slice)` is a Category, `name_of(name id)` a text. Calls within a stream's capture launch nothing. Near
// the end of the recording, work may still have been queued. So a launch counts as lost only if the recording goes on
// after it for longer than any recorded work took from its launch to its end. O(slices).
template <class CategoryOf, class NameOf>
LostLaunches lost_launches(const Part& part, CategoryOf category_of, NameOf name_of) {
  enum class Call : uint8_t { kOther, kLaunch, kBeginCapture, kEndCapture };
  const Slices& s = part.slices;
  LostLaunches out;
  std::unordered_map<StringId, Call> known;
  const auto call_of = [&](size_t i) {
    const auto [at, is_new] = known.try_emplace(s.name_id[i], Call::kOther);
    if (is_new) {
      const std::string_view name = name_of(s.name_id[i]);
      const auto has = [&](std::string_view part_of_name) { return name.find(part_of_name) != std::string_view::npos; };
      if (has("StreamBeginCapture")) at->second = Call::kBeginCapture;
      if (has("StreamEndCapture")) at->second = Call::kEndCapture;
      // CANN's calls have numbers of another kind.
      if (has("Launch") && (has("Kernel") || has("GraphLaunch")) && !has("acl")) at->second = Call::kLaunch;
    }
    return at->second;
  };
  std::vector<bool> has_work(s.size());  // of calls, with what they call themselves
  int64_t longest_ns = 0, last_ns = INT64_MIN;
  for (size_t i = 0; i < s.size(); ++i) {
    if (is_host(category_of(i))) last_ns = std::max(last_ns, s.end_ns(i));
    if (s.partner[i] == kNoSliceIndex || !is_launch_call(category_of(i))) continue;
    longest_ns = std::max(longest_ns, s.end_ns(s.partner[i]) - s.start_ns[i]);
    for (uint32_t up = static_cast<uint32_t>(i);
         up != kNoSliceIndex && !has_work[up] && is_launch_call(category_of(up)); up = s.parent[up])
      has_work[up] = true;
  }
  for (const Lane& lane : part.lanes) {
    if (lane.kind == LaneKind::kDeviceStream) continue;
    int capturing = 0;
    for (size_t i = lane.begin; i < lane.end; ++i) {
      if (!is_launch_call(category_of(i)) || s.correlation[i] == kNoCorrelation) continue;
      const Call call = call_of(i);
      if (call == Call::kBeginCapture) ++capturing;
      if (call == Call::kEndCapture) capturing = 0;
      if (call != Call::kLaunch || capturing > 0) continue;
      if (s.parent[i] != kNoSliceIndex && is_launch_call(category_of(s.parent[i]))) continue;
      out.launches.push_back(static_cast<uint32_t>(i));
      if (!has_work[i] && last_ns - s.start_ns[i] > longest_ns) out.lost.push_back(static_cast<uint32_t>(i));
    }
  }
  return out;
}

// Work cannot begin before its launch, so where it does, the device's clock is behind by at least the time between. One
// link in a hundred may be wrong (numbers that were used twice), so the least is given that leaves no more. ≤ 0: no
// clock is. `category_of(slice)` is a Category. O(slices).
template <class CategoryOf> int64_t clock_lead_ns(const Part& part, CategoryOf category_of) {
  const Slices& s = part.slices;
  std::vector<int64_t> leads;
  for (size_t i = 0; i < s.size(); ++i)
    if (const uint32_t launch = s.partner[i];
        launch != kNoSliceIndex && is_device_work(category_of(i)) && is_launch_call(category_of(launch)))
      leads.push_back(s.start_ns[launch] - s.start_ns[i]);
  if (leads.empty()) return 0;
  const auto at = leads.begin() + static_cast<std::ptrdiff_t>(leads.size() / 100);
  std::nth_element(leads.begin(), at, leads.end(), std::greater<>());
  return *at;
}

// Returns true where the rank's own profiler summed up computing, and the files have no kernel that computes: idle time
// of this rank would be a lack of files.
inline bool kernels_are_missing(const Part& part) {
  if (std::none_of(part.step_summaries.begin(), part.step_summaries.end(),
                   [](const StepSummary& step) { return step.computing_ns > 0; }))
    return false;
  for (size_t i = 0; i < part.slices.kernel_class.size(); ++i)
    if (part.slices.class_of(i) == KernelClass::kComputation) return false;
  return true;
}

// Returns for each of `parts` whether its kernels are missing although another part has some: its remaining device work
// has no shares to compare with theirs.
inline std::vector<bool> parts_without_kernels(const Trace& trace, const std::vector<size_t>& parts) {
  auto lacks = mapped<bool>(parts, [&](const size_t part) { return kernels_are_missing(trace.parts[part]); });
  if (std::find(lacks.begin(), lacks.end(), false) == lacks.end()) lacks.assign(lacks.size(), false);
  return lacks;
}

}  // namespace stageline
