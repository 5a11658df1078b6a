// The slices of a rank's host as nodes: slices with equal names under equal names are one.
#pragma once

#include "profile/timeline_data.h"

namespace stageline {

// Returns the text with "#" for every number: "step #: loss #.#".
std::string without_numbers(std::string_view text);

class HostNodes {
 public:
  // Nodes are added to `nodes`, of which the first is the root. `run` is the time in which the host worked. Where no
  // device communicates, hosts wait for each other in calls of the library.
  HostNodes(const Trace& trace, const Part& part, Interval run, bool device_communicates, std::vector<HostNode>& nodes)
      : trace_(trace), part_(part), s_(part.slices), run_(run), device_communicates_(device_communicates),
        nodes_(nodes) {}

  // Returns the node of a slice, kHostRoot for kNoSliceIndex.
  uint32_t of(uint32_t slice);
  // An annotation around the whole run says nothing of what the host does in it.
  bool is_around_run(uint32_t slice) const;

 private:
  static constexpr uint32_t kUnset = UINT32_MAX;
  Category category(size_t i) const { return trace_.categories[s_.category_id[i]].kind; }
  std::string_view name(size_t i) const { return trace_.names.text(s_.name_id[i]); }
  // Finds the names of annotations that hold a counter: several that differ in numbers alone, each of one slice. The
  // profiler's steps are not the program's annotations.
  void find_counters();
  IdleCause context_of(size_t i) const;
  // Nor does an annotation around a whole step.
  bool is_around_step(uint32_t slice) const;
  // All steps are one node, and so are annotations that count and one function of several objects.
  StringId plain_name(uint32_t slice);

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  const Interval run_;
  const bool device_communicates_;
  std::vector<HostNode>& nodes_;
  std::vector<uint32_t> node_of_slice_, path_;
  std::unordered_map<uint64_t, uint32_t> child_of_;
  std::vector<StringId> plain_;
  std::unordered_map<std::string, StringId> plain_names_;
  std::unordered_set<StringId> counters_;
};

// Calls of the driver, the runtime and message libraries, recognised by their names.
bool is_allocator_call(std::string_view name);  // allocates or frees memory of the device, or pinned memory
bool is_waiting_call(std::string_view name);    // may return only when work of the device has ended
bool is_copy_call(std::string_view name);
bool is_host_message(std::string_view name);  // of MPI or gloo

}  // namespace stageline
