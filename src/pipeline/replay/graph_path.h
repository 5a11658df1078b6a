// The critical path of a step through its graph, on the times that were recorded, and slack: what an operation may grow
// for free. Definitions: docs/analyses/pipeline-critical-path.md.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/replay/step_graph.h"

namespace stageline {

enum class PathPiece : uint8_t {
  kWork,      // the operation itself; of a group from the start of its last member on
  kTransfer,  // the same, where it is a message or another communication
  kDelay,     // nothing of what it waited for was missing, and it had not started
};
const char* path_piece_name(PathPiece piece);  // "work", "transfer", "delay"

// Pieces of one step lie end to end from 0 to GraphStep::span_ns.
struct PathStretch {
  uint32_t op = 0;    // whose time it is
  uint32_t peer = 0;  // the operation that waited for it: of a transfer the one on the other side, else op itself
  PathPiece piece = PathPiece::kWork;
  int64_t start_ns = 0, end_ns = 0;  // from the step's start
};

// Back from the operation that ends the step last (of several the first in order): an operation ran since its start (a
// group since its last member's), which waited for the latest of its waits to end. Where stamps contradict that, what
// an operation waited for comes first: the operation counts from there. By time. O(path · members).
std::vector<PathStretch> critical_path(const StepGraph& graph, const GraphStep& step);

// How much longer each operation could take, all others and all delays as they are, without the step ending later. On
// replayed times (equal to the recorded ones wherever no delay had to be cut). At least 0. O(ops + waits).
std::vector<int64_t> slack_ns(const StepGraph& graph);

}  // namespace stageline
