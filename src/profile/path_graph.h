// Both modes of the critical path build nodes (starts and ends of rows), edges (who waits for whom), and a path.
#pragma once

#include "profile/torch_rows.h"

namespace stageline {

enum class PathEdgeKind : uint8_t {
  kOperator,            // a row runs
  kDependency,          // one row comes after the other
  kLaunchDelay,         // from a launch call's start to its kernel's start
  kKernelKernel,        // from the end of a kernel to the start of the next on its stream
  kSync,                // a call, or another stream, waits for device work
  kGap,                 // default mode: a thread between its top-level operators
  kHandOver,            // default mode: a thread waits for another thread's operator
  kHandOverInferred,    // the same, where no arrow connects the threads
  kStreamWaitInferred,  // default mode: launched work starts when another stream's work ends, but no wait is recorded
  kStreamGap,           // default mode: launched work waits long, for an unknown reason
};
std::string_view path_edge_name(PathEdgeKind kind, bool hta);

struct PathNode {
  int64_t time_ns = 0;
  int32_t row = 0;  // row of the TorchRank
  bool is_end = false;
};

struct PathEdge {
  static constexpr int32_t kNobody = -2, kRoot = -1;  // values of `row`: no row; the thread's root
  uint32_t from = 0, to = 0;
  PathEdgeKind kind = PathEdgeKind::kOperator;
  bool critical = false;
  bool weighs = true;     // hta: false where the time between the nodes does not count
  int32_t row = kNobody;  // the row that the time is attributed to
};

struct PathGraph {
  std::vector<PathNode> nodes;  // ordered by time
  std::vector<PathEdge> edges;
  std::vector<uint32_t> path;        // nodes from first to last; empty when there is no path
  std::vector<uint32_t> path_edges;  // the edges between them
  bool found = false;                // there is a row in the window
  bool sound = true;                 // hta: there is no circle, and no stream waits for itself
  int64_t from_ns = 0, to_ns = 0;    // default mode: the wall time that is looked at
  size_t matches = 0;                // default mode: how many rows the annotation's name matches
  bool has_syncs = false;            // default mode: there are cuda_sync rows
  int64_t acausal = 0;               // default mode: dependencies that end before they begin; they are left out
  // Returns the weight of an edge; in hta mode it may be negative, where an effect comes before its cause.
  int64_t weight_ns(const PathEdge& edge) const {
    return edge.weighs ? nodes[edge.to].time_ns - nodes[edge.from].time_ns : 0;
  }
  int64_t looks = 0;  // default mode: steps through open operators and through lists of other threads: its cost
};

struct PathOptions {
  std::string annotation;      // part of a name; "" for the whole trace
  size_t first = 0, last = 0;  // instances of the annotation
  std::vector<std::string> data_load;
  bool zero_launch = false;
};

// Return for each name id whether it is one of `wanted`, or contains one of `parts`.
std::vector<uint8_t> names_equal(const TorchRun& run, const std::vector<std::string_view>& wanted);
std::vector<uint8_t> names_with(const TorchRun& run, const std::vector<std::string>& parts);

}  // namespace stageline
