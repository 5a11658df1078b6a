// The critical path of a step through its graph, on recorded times, and slack: how much longer an operation may take
// without making the step longer. Definitions: docs/analyses/pipeline-critical-path.md.
#pragma once

#include "pipeline/replay/step_graph.h"

namespace stageline {

enum class PathPiece : uint8_t {
  kWork,      // the operation itself; for a group, from the start of its last member on
  kTransfer,  // the same, where the operation is a message or other communication
  kDelay,     // everything the operation waited for was there, and it had not started yet
};
const char* path_piece_name(PathPiece piece);  // "work", "transfer", "delay"

// Pieces of a step's critical path are adjacent, from 0 to GraphStep::span_ns.
struct PathStretch {
  uint32_t op = 0;    // the operation whose time it is
  uint32_t peer = 0;  // the operation that waited for it: for a transfer the one on the other side, otherwise op itself
  PathPiece piece = PathPiece::kWork;
  int64_t start_ns = 0, end_ns = 0;  // counted from the step's start
};

// Goes backwards from the operation that ends the step (the first in order, if several end last). An operation ran from
// its start (a group from its last member's start), and before that waited for the latest to end of what it waits for.
// Where timestamps contradict this, the wait has precedence: the operation counts only from the end of what it waited
// for. Returns the pieces in order of time. O(path · members).
std::vector<PathStretch> critical_path(const StepGraph& graph, const GraphStep& step);

// Returns how much longer each operation could take without the step ending later, with all other times and delays
// unchanged. Uses replayed times, which equal the recorded ones wherever no delay had to be cut. At least 0. O(ops +
// waits).
std::vector<int64_t> slack_ns(const StepGraph& graph);

}  // namespace stageline
