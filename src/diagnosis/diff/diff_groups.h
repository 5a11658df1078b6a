// Sorts the times of run B's operations into the groups that run_diff explains a change by. Part of run_diff.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/diff/diff_answer.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

struct DiffGroups {
  std::vector<DiffGroup> list;             // cause, place, count, means and part; effects are left open
  std::vector<uint32_t> of_dur, of_delay;  // by operation; list.size() where nothing changes
};

// Groups whose times are all those of A are left out; beyond `most` those of least summed change are one, kMore, the
// last. `usual`: by step, whether it counts. O(operations · log groups).
DiffGroups group_operations(const StepGraph& b, const OpTimes& a_times, const std::vector<bool>& usual, size_t most);

// Sets `paused` and `pause_ns` where a tenth of a group's starts, or three tenths of its messages, or fewer, became later
// (longer) by four fifths or more of all that they changed by. `changes_ns`: B − A of each. O(n log n).
void tell_pauses(const std::vector<double>& changes_ns, DiffGroup& group);

}  // namespace stageline
