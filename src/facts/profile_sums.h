// The work of a profile's devices and hosts, summed for every rank, as a fact of a run. Analyses make their tables of
// the same sums; explain and figures read them here.
#pragma once

#include "facts/run.h"
#include "profile/cluster_times.h"
#include "profile/device_time.h"
#include "profile/memory_blocks.h"
#include "profile/tb_advice.h"

namespace stageline {

// The mean step by the categories of the profiler plugin, to the nanosecond.
struct StepCosts {
  int64_t step_ns = 0;
  TbCosts costs{};
};

struct DeviceSums {
  int32_t rank = 0;
  DeviceTime time;
  std::vector<DeviceStep> steps;
  double full_queue_share = 0;                            // of the stream whose queue was full longest
  std::vector<std::pair<StringId, int64_t>> pageable_ns;  // copies of pageable memory by name
  RankWaits collectives;
  std::optional<TbMeanWork> work;       // unset without steps
  std::optional<StepCosts> step_costs;  // empty as above
  // `step_costs` step by step: both lists have the steps of `step_costs`.
  std::vector<TbCosts> costs_of_steps;
  std::vector<TbOverlap> overlaps_of_steps;
  std::vector<TbStepWait> step_waits;             // in collectives, step by step
  int64_t joined_collectives = 0, came_last = 0;  // those found on other ranks too
  std::vector<TbAdvice> advice;
  std::optional<ClusterSum> cluster;  // of Ascend
};

// A link that is slower than others of its kind.
struct SlowLinkSum {
  int32_t src = 0, dst = 0;
  std::string_view link, reading;  // "HCCS"; RankLink::reading
  int64_t lost_ns = 0;
  double ratio = 0;
};

struct ProfileSums {
  std::vector<DeviceSums> ranks;  // those that are asked for; all their steps
  bool communicates = false;
  std::vector<SlowLinkSum> slow_links;  // who costs most first
};

// Empty where the trace has no profiler slices. Every rank's rows are laid out once. O(n log n) in the slices.
const ProfileSums& profile_sums_of(const Run& run);

// The class of most of a device's memory at its peak, and its share, where blocks could be followed.
struct LargestClass {
  MemoryClass of = MemoryClass::kNotKnown;
  double share = 0;
};
std::optional<LargestClass> largest_class_at_peak(const Trace& trace, int32_t rank);

// The host time of an operator on one rank, less that of the calls directly within it on its thread.
struct SelfTime {
  std::string name;
  int32_t rank = 0;
  int64_t self_ns = 0;
  double share = 0;  // of the self time of all calls of the rank; annotations call nothing
};
// Returns self times rank by rank, in the order of first calls. With `in_steps`, calls outside of steps are omitted
// where there are steps. O(n log n) in the slices.
std::vector<SelfTime> self_times(const Trace& trace, bool in_steps);
// The three names with the most time by themselves, of slices of any kind: "work.f (998 ms), time.sleep (845 ms)".
std::string longest_names(const Trace& trace);

}  // namespace stageline
