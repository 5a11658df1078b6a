// What both modes of the critical path build: nodes (starts and ends of rows), edges (who waits for whom), a path.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profile/torch_rows.h"

namespace stageline {

enum class PathEdgeKind : uint8_t {
  kOperator,            // a row runs
  kDependency,          // one after the other
  kLaunchDelay,         // a launch call's start to its kernel's start
  kKernelKernel,        // the end of a stream's kernel to the start of the next
  kSync,                // device work waited for: by a call, or by another stream
  kGap,                 // default mode: a thread between its top-level operators
  kHandOver,            // default mode: a thread waits for another thread's operator
  kHandOverInferred,    // the same, without an arrow that joins the threads
  kStreamWaitInferred,  // default mode: launched work starts when another stream's ends; no wait is recorded
  kStreamGap,           // default mode: launched work waits long, and nothing says for what
};
std::string_view path_edge_name(PathEdgeKind kind, bool hta);

struct PathNode {
  int64_t time_ns = 0;
  int32_t row = 0;  // of the TorchRank
  bool is_end = false;
};

struct PathEdge {
  static constexpr int32_t kNobody = -2, kRoot = -1;  // attribution: none; the thread's root
  uint32_t from = 0, to = 0;
  PathEdgeKind kind = PathEdgeKind::kOperator;
  bool critical = false;
  bool weighs = true;     // hta: false where the time between the nodes does not count
  int32_t row = kNobody;  // whose time it is
};

struct PathGraph {
  std::vector<PathNode> nodes;  // by time
  std::vector<PathEdge> edges;
  std::vector<uint32_t> path;        // nodes, first to last; empty when there is none
  std::vector<uint32_t> path_edges;  // between them
  bool found = false;                // some row is in the window
  bool sound = true;                 // hta: no circle, no wait of a stream for itself
  int64_t from_ns = 0, to_ns = 0;    // default mode: the wall time looked at
  size_t matches = 0;                // default mode: rows that the annotation names
  bool has_syncs = false;            // default mode: cuda_sync rows are there
  int64_t acausal = 0;               // default mode: dependencies that end before they begin, left out
  // What an edge weighs; hta: below 0 where its effect comes before its cause.
  int64_t weight_ns(const PathEdge& edge) const {
    return edge.weighs ? nodes[edge.to].time_ns - nodes[edge.from].time_ns : 0;
  }
  int64_t looks = 0;  // default mode: lists of other threads looked into, which is what hand-overs cost
};

struct PathOptions {
  std::string annotation;      // part of a name; "" for the whole trace
  size_t first = 0, last = 0;  // instances
  std::vector<std::string> data_load;
  bool zero_launch = false;
};

// Names by id that one of `wanted` accepts; the same for parts of names.
std::vector<uint8_t> names_equal(const TorchRun& run, const std::vector<std::string_view>& wanted);
std::vector<uint8_t> names_with(const TorchRun& run, const std::vector<std::string>& parts);

}  // namespace stageline
