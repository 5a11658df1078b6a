// Gathers the function events of one rank into rows of a table, as torch.profiler's key_averages() does.
#pragma once

#include "profile/function_events.h"
#include "profile/python_stacks.h"

namespace stageline::operators {

struct GroupOptions {
  bool by_input_shape = false;
  bool by_overload_name = false;
  int64_t stack_entries = 0;  // groups by this number of innermost entries of the stack; 0 does not group by stacks
  // Uses only stacks that torch itself recorded; otherwise stacks are rebuilt from frames.
  bool recorded_stacks = false;
  bool with_flops = false;
  bool hide_frames = false;  // Python frames are callers but no rows, as in torch since 2.14
  FunctionEventOptions events;
};

struct Group {
  uint32_t first = 0;  // the event that comes first in torch's order; the row has its kind, parent and stack
  // Id of a trace's name: an operator with that overload; 0 when there is none or it was not asked for.
  StringId overload = 0;
  uint32_t shape = 0;  // index into OperatorGroups::shapes
  uint32_t stack = 0;  // node of OperatorGroups::stacks
  int64_t count = 0;
  int64_t host_ns = 0, self_host_ns = 0, device_ns = 0, self_device_ns = 0;
  FunctionMemory bytes;
  int64_t flops = 0;
};

struct OperatorGroups {
  FunctionEvents made;
  std::vector<Group> groups;  // in order of first occurrence
  static constexpr uint32_t kNoGroup = UINT32_MAX;
  std::vector<uint32_t> group_of;   // for each event; kNoGroup for hidden frames
  std::vector<std::string> shapes;  // "[[5, 128], []]"; entry 0 stands for "not asked for"
  PythonStacks stacks;              // empty unless asked for

  const FunctionEvent& first_of(const Group& group) const { return made.events[group.first]; }
};

// O(events), and what function_events() and the stacks cost. Sums beyond the limits of int64 stay at the limit.
OperatorGroups group_events(const Trace& trace, const Part& part, const FunctionNames& names,
                            const GroupOptions& options);

}  // namespace stageline::operators
