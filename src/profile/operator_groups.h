// Function events of one rank gathered into the rows of a table: what torch.profiler's key_averages() does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/function_events.h"
#include "profile/python_stacks.h"

namespace stageline::operators {

struct GroupOptions {
  bool by_input_shape = false;
  bool by_overload_name = false;
  int64_t stack_entries = 0;     // group by the innermost so many entries of the stack; 0: not
  bool recorded_stacks = false;  // only what torch itself recorded; else rebuilt from frames
  bool with_flops = false;
  FunctionEventOptions events;
};

struct Group {
  uint32_t first = 0;     // the event that comes first in torch's order: its kind, parent and stack are the row's
  StringId overload = 0;  // of the trace's names: an operator with that overload; 0: none, or not asked
  uint32_t shape = 0;     // into OperatorGroups::shapes
  uint32_t stack = 0;     // node of OperatorGroups::stacks
  int64_t count = 0;
  int64_t host_ns = 0, self_host_ns = 0, device_ns = 0, self_device_ns = 0;
  FunctionMemory bytes;
  int64_t flops = 0;
};

struct OperatorGroups {
  FunctionEvents made;
  std::vector<Group> groups;        // in the order of first occurrence
  std::vector<uint32_t> group_of;   // by event
  std::vector<std::string> shapes;  // "[[5, 128], []]"; 0: none asked
  PythonStacks stacks;              // empty unless asked

  const FunctionEvent& first_of(const Group& group) const { return made.events[group.first]; }
};

// O(events), and what function_events() and the stacks cost. Sums that pass the limits of int64 stay at them.
OperatorGroups group_events(const Trace& trace, const Part& part, const FunctionNames& names,
                            const GroupOptions& options);

}  // namespace stageline::operators
