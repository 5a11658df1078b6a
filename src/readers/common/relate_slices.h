// What the readers of profiler traces have in common once a rank's slices lie in their lanes: who encloses, launched
// and owns whom, which step it belongs to, and how the ids of one rank become the trace's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"

namespace stageline {

// What stands between a file's own ids and the trace's.
struct FileNames {
  std::vector<std::string> names;  // by name id
  std::vector<CategoryInfo> categories;
};

struct RelateOptions {
  bool lanes_are_typed = false;         // Lane::kind is set; else found by the categories of the lane's slices
  bool owners_are_certain = false;      // external ids name operators; else some of Kineto's only repeat correlations
  bool kernels_are_classified = false;  // Slices::kernel_class is set; else found by names and collectives
};

// Fills parent, partner, step, steps, launch_owners and kernel_class of a part whose lanes are in order (start, longer
// first, file order). `external_id`: by slice, kNoCorrelation for none; device work and launch calls belong to the
// operator of the same number. Linear, but for the sorting of steps.
void relate_slices(const FileNames& names, const std::vector<uint32_t>& external_id, const RelateOptions& how,
                   Part& part);

// What a lane is by its slices: the first that device or host alone have decides.
template <class CategoryAt>
LaneKind lane_kind(const Lane& lane, CategoryAt category) {
  for (size_t i = lane.begin; i < lane.end; ++i) {
    const Category c = category(i);
    if (is_device_work(c) || c == Category::kGpuAnnotation || c == Category::kDeviceSync)
      return LaneKind::kDeviceStream;
    if (is_host(c)) return LaneKind::kHostThread;
  }
  return LaneKind::kOther;
}

// Gives the names and categories to the trace; `name_map` and `category_map` are then from the file's ids to
// the trace's. In rank order, one at a time.
void adopt_names(const FileNames& names, Trace& trace, std::vector<StringId>& name_map,
                 std::vector<uint8_t>& category_map);

// Rewrites the part's ids; several parts can do so at once.
void rename_part(const std::vector<StringId>& name_map, const std::vector<uint8_t>& category_map, Part& part);

// Adds to every time of a part.
void shift_part(Part& part, int64_t by_ns);

}  // namespace stageline
