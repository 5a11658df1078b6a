// Parts of run_diff.
#pragma once

#include "diagnosis/causes/causes.h"
#include "diagnosis/diff/diff_answer.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

// Estimates the time of every operation of run B in run A: the time of the operation at the same place or, if there is
// none, of similar ones.
struct DiffMatch {
  OpTimes a_times;             // for each operation of B
  std::vector<bool> is_exact;  // for each operation of B
  int64_t matched = 0, unmatched = 0, unused = 0;
};

// `pair_of` gives for each step of B the step of A that it is compared with (both index StepGraph::steps), or −1, so
// that its own times stay. `usual_a` says for each step of A whether it counts in means.
//
// Operations match by replica, stage, place among the ranks of both, kind (collectives by type), chunk, and
// micro-batch. Micro-batches are numbered by the order of their labels within a chunk or, where one of the runs does
// not know them, by order of time. Operations that are equal in all this match by order. Others take A's mean of
// (stage, kind, chunk), of (stage, kind), or of the kind; compute times then scale with the number of virtual stages. A
// B equals an I and a W together, which share a B's time as they do in B.
//
// If only one run recorded messages, a message's transfer is compared and B's own delay stays: the early post of a
// receive is not part of an unrecorded message. O(operations · log operations of a step).
DiffMatch match_operations(const StepGraph& a, const StepGraph& b, const Trace& trace_a, const Trace& trace_b,
                           const std::vector<int64_t>& pair_of, const std::vector<bool>& usual_a);

// Sorts the times of run B's operations into the groups by which run_diff explains a change.
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

// Causes that run B has and run A has not, by the operations that they are about.
class NewCauses {
 public:
  NewCauses(const CauseList& b, const StepGraph& graph, const Trace& a_trace, const Trace& b_trace);

  // Number of the cause that an operation's time belongs to, wherever it ran; kNoCause if it belongs to its stage.
  uint32_t of(uint32_t op) const;
  const Cause& cause(uint32_t number) const { return *causes_[number]; }
  // The operations of a cause: "micro-batch 0, on every stage".
  Text what(uint32_t number) const;
  // Returns whether one of them certainly explains what `group` lost. This is the cause with the number `named` or, if
  // that is kNoCause, one about the work of the group's stage or rank.
  bool is_certain(const DiffGroup& group, uint32_t named) const;

 private:
  void add(const Cause& cause, uint32_t number, bool alone);

  const StepGraph& graph_;
  const Trace& trace_;
  std::vector<const Cause*> causes_;
  std::map<int32_t, uint32_t> by_micro_batch_, by_part_;
  uint32_t everywhere_;
};

// Fills diff.a and diff.b (sizes and schedule) and diff.changes. Changes are another schedule, other stages, chunks,
// micro-batches, replicas or ranks, and messages recorded in one run only. Lists that follow the schedule in one run
// and deviate from it in the other are changes too. O(cells) beyond recognise().
void describe_shapes(const Trace& a, const StepGraph& graph_a, const Trace& b, const StepGraph& graph_b, RunDiff& diff);

}  // namespace stageline
