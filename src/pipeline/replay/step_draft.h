// StepDraft: the operations of one step with their waits and groups, in any order. Two ways to find waits
// (operation_waits.h, cell_waits.h) fill drafts, and assemble_graph() makes the graph of them.
#pragma once

#include "pipeline/replay/graph_ops.h"

namespace stageline {

inline constexpr int64_t kSameNs = 50'000;  // two timestamps of the same moment may differ by this much

// Returns the same for aligned clocks: as far apart as their likely error lets timestamps of one moment be. O(ranks).
int64_t same_moment_ns(const Trace& trace);

struct DraftOp {
  uint32_t cell = kNoCell;
  uint16_t type = 0;  // index into the graph's types
  CellKind kind = CellKind::kOther;
  int32_t part = 0, chunk = kUnknown, micro_batch = kUnknown;
  int64_t start_ns = 0, end_ns = 0;  // in common time
};

struct StepDraft {
  int32_t step = 0;
  std::vector<DraftOp> ops;
  std::vector<std::pair<uint32_t, uint32_t>> waits;  // (operation, what it waits for); a pair may occur twice
  std::vector<uint32_t> group;                       // for each operation the number of its group, or kNoGroup
  uint32_t group_count = 0;

  void clear() {  // keeps the memory
    ops.clear(), waits.clear(), group.clear();
    group_count = 0;
  }
  void wait(uint32_t op, uint32_t on) {
    if (op != on) waits.emplace_back(op, on);
  }
};

// Drafts that are made one at a time, since all drafts of a large run together would take more memory than the graph.
struct StepDrafts {
  std::vector<GraphType> types;    // the types of all drafts
  bool grouped = false;            // some drafts may have groups
  bool messages_recorded = false;  // becomes StepGraph::messages_recorded
  std::vector<uint32_t> op_count;  // for each step
  // Makes the draft of each step, from several threads; the draft has been cleared.
  std::function<void(size_t step, StepDraft& draft)> make;
};

// Orders the operations of every step so that waits point backwards and groups stand side by side, and computes
// durations and delays. Waits that were cut and times that were set to 0 are reported in `notes`. O((ops + waits) log),
// in parallel over steps.
StepGraph assemble_graph(const Trace& trace, StepDrafts drafts, GraphSource source, Diagnostics& notes);

// Gradients are added up, and clipped by a norm over all ranks. With several ranks, all are assumed to wait
// for all if no optimizer of a step starts before the last compute cell of all its ranks has ended. The time
// until the first optimizer starts then belongs to an unrecorded operation; without it each pair of ranks
// would need a wait. If there are collectives before the optimizers, the operation comes after them. Expects
// that draft.group is filled. Timestamps that differ by at most `same_ns` are of one moment. `type` is the type of that
// operation, gradients_type(). Returns true if it was added.
bool gradients_together(StepDraft& draft, uint16_t type, int64_t same_ns);
GraphType gradients_type();

// Returns the position of each part among the parts of its replica and stage, in rank order; this is its
// tensor-parallel index.
std::vector<int32_t> peer_positions(const Trace& trace);

// Makes drafts from recorded messages and collectives; their operations have the names of the artifact's op types.
// Returns no drafts when the trace has none of these, or when its chunks turn round at the last stage. It also returns
// none for work with names other than the artifact's or a split backward's. If no clipping of gradients was recorded,
// which would connect the ranks, gradients_together() is used. With `mapped`, times are common times, otherwise
// timestamps.
std::vector<StepDraft> draft_operations(const Trace& trace, bool mapped, LaunchRule rule, std::vector<GraphType>& types,
                                        Diagnostics& notes);
// Makes drafts from compute cells, optimizers and collectives in the order of every rank, and from trace.links. The
// trace must outlive the result.
StepDrafts draft_cells(const Trace& trace, Diagnostics& notes);

}  // namespace stageline
