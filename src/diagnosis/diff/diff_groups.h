// Sorts the times of run B's operations into the groups by which run_diff explains a change. Part of run_diff.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "diagnosis/diff/diff_answer.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

struct DiffGroups {
  std::vector<DiffGroup> list;             // cause, place, count, means and part; effects are not yet filled in
  std::vector<uint32_t> of_dur, of_delay;  // for each operation an index into list; list.size() where nothing changes
  std::vector<uint32_t> named;             // for each group its number of NamedWork, or kNoCause
};

// Returns for a compute operation the number of the cause that its time belongs to on any stage; kNoCause if it belongs
// to its stage.
using NamedWork = std::function<uint32_t(uint32_t op)>;
inline constexpr uint32_t kNoCause = UINT32_MAX;

// Groups whose times are all A's are left out. Beyond `most` groups, those with the least summed change are one, kMore,
// which is the last. `usual` says for each step whether it counts. `named` may be empty; DiffGroups::named gives the
// cause of a group. O(operations · log groups).
DiffGroups group_operations(const StepGraph& b, const OpTimes& a_times, const std::vector<bool>& usual, size_t max,
                            const NamedWork& named);

// Sets `paused` and `pause_ns` of a group if few of its operations hold nearly all of the change. At most a tenth of
// its starts, or three tenths of its messages, became later (or longer), by at least four fifths of the total change.
// `changes_ns` is B − A of each operation. O(n log n).
void tell_pauses(const std::vector<double>& changes_ns, DiffGroup& group);

// "weight gradient", "forward", …
Text kind_words(CellKind kind);

}  // namespace stageline
