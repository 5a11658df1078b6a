// Computes how much stragglers slow a job down, and which: S and its shares. It replays the step graph in scenarios
// where some operations take their recorded time and all others the fair one of their type. The definitions are in
// docs/analyses/slowdown.md, after "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI
// '25), equations 1, 2, 4 and 5.
#pragma once

#include "pipeline/replay/step_graph.h"

namespace stageline {

// Holds one choice of operations: those of a type, of a replica or of a stage. T is the mean step time when only these
// take their recorded time; S = T ÷ ideal.
struct SlowdownPart {
  std::string name;            // of a type
  int32_t number = 0;          // of a replica or stage
  double s = 1;                // S of the choice
  std::vector<double> step_s;  // for each step
  double add_ns = 0;           // T − ideal
};

struct SlowdownType {
  std::string name;
  CellKind kind = CellKind::kOther;
  bool communicates = false;
  int64_t count = 0;
  double mean_ns = 0, fair_ns = 0;  // of one operation, without waiting
};

struct SlowdownWorker {
  int32_t part = 0;
  double s = 1;           // min(S of its replica, S of its stage): eq. 4 with the artifact's approximation
  bool replaced = false;  // one of the slowest 3 %, which M_W makes ideal
};

// Below this S the shares M_S and M_W would divide by nearly nothing; the paper's artifact leaves them out as well.
inline constexpr double kMinSlowdown = 1.03;

struct Slowdown {
  double actual_ns = 0, no_delay_ns = 0, ideal_ns = 0;  // mean over steps that count
  double s = 1;                                         // no_delay ÷ ideal, eq. 1
  double delay_s = 1;                                   // actual ÷ no_delay
  double m_s = 0, m_w = 0;                              // NaN where S < kMinSlowdown
  std::vector<double> step_no_delay_ns, step_ideal_ns;  // for each step of the graph
  std::vector<SlowdownPart> types;             // the largest S first; messages of one direction count as one type
  std::vector<SlowdownPart> replicas, stages;  // by number
  std::vector<SlowdownWorker> workers;         // by part; those with a known stage that have work
  std::vector<SlowdownType> operations;        // for each type of the graph
};

// The type by which an operation is judged: sends and receives of one direction share one.
std::string slowdown_group(const GraphType& type, GraphSource source);

// O((ops + waits) · (types + replicas + stages)). Where operations × replicas exceed kMaxReplicaWork, replicas are not
// distinguished (`replicas` is empty) and a worker is judged by its stage alone.
inline constexpr double kMaxReplicaWork = 4e9;
Slowdown slowdown(const Trace& trace, const StepGraph& graph);

}  // namespace stageline
