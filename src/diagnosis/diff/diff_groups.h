// Sorts the times of run B's operations into the groups that run_diff explains a change by. Part of run_diff.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "diagnosis/diff/diff_answer.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

struct DiffGroups {
  std::vector<DiffGroup> list;             // cause, place, count, means and part; effects are left open
  std::vector<uint32_t> of_dur, of_delay;  // by operation; list.size() where nothing changes
  std::vector<uint32_t> named;             // by group: of NamedWork, or kNoCause
};

// By compute operation, the number of a cause that tells its time wherever it ran; kNoCause where its stage does.
using NamedWork = std::function<uint32_t(uint32_t op)>;
inline constexpr uint32_t kNoCause = UINT32_MAX;

// Groups whose times are all those of A are left out; beyond `most` those of least summed change are one, kMore, the
// last. `usual`: by step, whether it counts. `named`: may be empty; DiffGroups::named tells which group is whose.
// O(operations · log groups).
DiffGroups group_operations(const StepGraph& b, const OpTimes& a_times, const std::vector<bool>& usual, size_t most,
                            const NamedWork& named);

// Sets `paused` and `pause_ns` where a tenth of a group's starts, or three tenths of its messages, or fewer, became
// later (longer) by four fifths or more of all that they changed by. `changes_ns`: B − A of each. O(n log n).
void tell_pauses(const std::vector<double>& changes_ns, DiffGroup& group);

}  // namespace stageline
