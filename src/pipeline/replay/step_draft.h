// StepDraft: the operations of one step with their waits and groups, in any order; assemble_graph() makes the graph.
// The two ways to find waits (operation_waits.h, cell_waits.h) fill drafts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/replay/graph_ops.h"

namespace stageline {

inline constexpr int64_t kSameNs = 50'000;  // what two stamps of one moment may differ by

struct DraftOp {
  uint32_t cell = kNoCell;
  uint16_t type = 0;  // into the graph's types
  CellKind kind = CellKind::kOther;
  int32_t part = 0, chunk = kUnknown, micro_batch = kUnknown;
  int64_t start_ns = 0, end_ns = 0;  // common time
};

struct StepDraft {
  int32_t step = 0;
  std::vector<DraftOp> ops;
  std::vector<std::pair<uint32_t, uint32_t>> waits;  // (operation, what it waits for); repetitions are fine
  std::vector<uint32_t> group;                       // by operation: number of its group, or kNoGroup
  uint32_t group_count = 0;

  void clear() {  // keeps the space
    ops.clear(), waits.clear(), group.clear();
    group_count = 0;
  }
  void wait(uint32_t op, uint32_t on) {
    if (op != on) waits.emplace_back(op, on);
  }
};

// Drafts that are made one by one: of a large run all of them take more than the graph.
struct StepDrafts {
  std::vector<GraphType> types;    // of all drafts
  bool grouped = false;            // some draft may have groups
  bool messages_recorded = false;  // StepGraph::messages_recorded
  std::vector<uint32_t> op_count;  // by step
  // Called once a step, from several threads; `draft` has been cleared.
  std::function<void(size_t step, StepDraft& draft)> make;
};

// Orders every step so that waits point back and groups stand side by side, computes durations and delays. What had to
// be cut or set to 0 goes to `notes`. O((ops + waits) log), in parallel over steps.
StepGraph assemble_graph(const Trace& trace, StepDrafts drafts, GraphSource source, Diagnostics& notes);

// Gradients are added up, and clipped by a norm over all ranks: where no optimizer of a step begins before the last
// compute cell of all its ranks has ended (of several ranks), all wait for all. What passes until the first one begins
// belongs to an operation of its own, which nobody recorded: without it there would be as many waits as pairs of ranks.
// It comes after the collectives before the optimizers, where there are such. Expects groups.
// `type` is the operation's: gradients_type(). Whether there is one.
bool gradients_together(StepDraft& draft, uint16_t type);
GraphType gradients_type();

// Position of each part among the parts of its replica and stage, in rank order: the tensor-parallel index.
std::vector<int32_t> peer_positions(const Trace& trace);

// Recorded messages and collectives: operations by the names of the artifact's op types. Empty when the trace has none
// of them, has work by names that are not the artifact's or those of a split backward, or chunks that turn round at the
// last stage. Where no clipping of gradients was recorded, which would tie the ranks together, gradients_together().
// `mapped`: on common time, else as stamped.
std::vector<StepDraft> draft_operations(const Trace& trace, bool mapped, LaunchRule rule, std::vector<GraphType>& types,
                                        Diagnostics& notes);
// Compute cells, optimizer and collectives, in the order of every rank, and trace.links. The trace must outlive it.
StepDrafts draft_cells(const Trace& trace, Diagnostics& notes);

}  // namespace stageline
