// Relates the slices of one rank after a reader has put them into lanes: parent, launch, owner and step of each slice.
// Then replaces rank-local ids by ids of the trace.
#pragma once

#include "model/trace.h"

namespace stageline {

// The names and categories behind a file's own ids.
struct FileNames {
  std::vector<std::string> names;  // by name id
  std::vector<CategoryInfo> categories;
};

struct RelateOptions {
  // Lane::kind has been set; otherwise it is found by the categories of the lane's slices.
  bool lanes_are_typed = false;
  // External ids name operators; otherwise some ids only repeat correlations, as Kineto's do.
  bool owners_are_certain = false;
  // Slices::kernel_class has been set; otherwise it is found by names and collectives.
  bool kernels_are_classified = false;
  // Where durations that cannot be are reported, under the reader's name.
  Diagnostics* notes = nullptr;
  std::string_view format = {};
};

// Ends device work that lasts too long to be true. Then fills parent, partner, step, steps, launch_owners and
// kernel_class of a part whose lanes are in order (start, longer first, file order). `external_id` is by slice,
// kNoCorrelation for none, or empty where no slice has one; device work and launch calls belong to the operator of the
// same number. Linear, but for the sorting of steps.
void relate_slices(const FileNames& names, const std::vector<uint32_t>& external_id, const RelateOptions& how,
                   Part& part);

// Returns the kind of a lane; the first of its slices that can only be on a device, or only on a host, decides.
template <class CategoryAt> LaneKind lane_kind(const Lane& lane, CategoryAt category) {
  for (size_t i = lane.begin; i < lane.end; ++i) {
    const Category c = category(i);
    if (is_device_work(c) || c == Category::kGpuAnnotation || c == Category::kDeviceSync)
      return LaneKind::kDeviceStream;
    if (is_host(c)) return LaneKind::kHostThread;
  }
  return LaneKind::kOther;
}

// Leads from a file's ids of names and categories to the trace's.
struct NameMap {
  std::vector<StringId> names;
  std::vector<uint8_t> categories;
};

// Adds a file's names and categories to the trace. To be called for one rank after another, in ascending order.
NameMap adopt_names(const FileNames& names, Trace& trace);

// Replaces the part's ids by the trace's; several parts can be done at once.
void rename_part(const NameMap& map, Part& part);

// Adds `by_ns` to every time of a part.
void shift_part(Part& part, int64_t by_ns);

}  // namespace stageline
