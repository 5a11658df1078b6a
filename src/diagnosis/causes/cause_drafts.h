// Where causes are looked for: each search leaves drafts, a suspicion with the world without it. causes_of() replays
// the worlds and keeps what costs enough. Part of causes; searches run in this order, for later ones divide out what
// earlier ones found.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "diagnosis/causes/beyond_noise.h"
#include "diagnosis/causes/cause.h"
#include "diagnosis/causes/cell_times.h"
#include "model/statistics.h"
#include "pipeline/measure/run_coverage.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

// Changes an operation's times into those of a world without the cause.
using CauseWorld = std::function<void(uint32_t op, double& dur_ns, double& delay_ns)>;

struct CauseDraft {
  Cause cause;
  CauseWorld without, evened;  // evened: may be empty
  CauseWorld otherwise;        // may be empty: without it too, by another reading of what would then be normal
};

// What all searches look at; worlds refer to it. All references must outlive it.
struct CauseScene {
  const Trace& trace;
  const StepGraph& graph;
  const std::vector<bool>& counts;  // by step of the graph
  const RunCoverage& coverage;
  CellTimes times;
  bool two_ways = false;  // micro-batches enter at both ends of the pipeline

  // Whether the start of a compute cell tells of its rank or its message: it waits for something, all that it waits
  // for was read, and it is there once.
  bool tells_delay(uint32_t op) const {
    return times.worker_of(op) != CellTimes::kNone && !graph.waits(op).empty() &&
           (graph.cell[op] == kNoCell || (coverage.fed(graph.cell[op]) && !coverage.repeated(graph.cell[op])));
  }
  template <class Body>
  void each_op(const Body& body) const {  // of the steps that count: body(op, step of the graph)
    for (size_t s = 0; s < graph.steps.size(); ++s)
      for (uint32_t op = graph.steps[s].begin; counts[s] && op < graph.steps[s].end; ++op) body(op, s);
  }
};

// A long step is explained by a cause only as far as usual steps know it: what is beyond so many times the most that
// any of them holds, a hang among pauses, has a reason of its own.
inline constexpr double kMostOfUsual = 2;

inline constexpr double kSlowCause = 1.05;      // of a stage or worker, against the others
inline constexpr double kLateStart = 0.1;       // of the median compute cell, beyond which a start is late
inline constexpr int64_t kLeastLateCells = 3;   // fewer are chance, whatever their share
inline constexpr size_t kMostWorkerCauses = 8;  // slow ones that are told apart

// Whether times to the others', one a step, are above 1 beyond any doubt: half of what they are above would still be
// beyond chance. Of one step nothing is.
inline bool certainly_slow(const std::vector<double>& ratios) {
  const double error = sample_std(ratios) / std::sqrt(static_cast<double>(ratios.size()));
  return ratios.size() > 1 && beyond_noise((mean_of(ratios) - 1) / 2, error, static_cast<int64_t>(ratios.size()));
}

// A course that rises, by what the others take (1): slow steps by kSlowCause or more, and else by half of that at most.
// Then it is certain, whatever the mean over all steps scatters by.
inline bool slow_course(const Course& course) {
  const auto [low, high] = std::minmax(course.low, course.high);
  return course.varies() && high >= kSlowCause && low - 1 <= (high - 1) / 2;
}
// What an operation's time is divided by in a step of that course: in its usual steps 1.
inline double course_factor(const Course& course, size_t step) {
  const double level = course.level[step];
  return level >= (1 + kSlowCause) / 2 ? level : 1;
}
// By operation's place among the graph's steps.
inline size_t step_of(const StepGraph& graph, uint32_t op) {
  return static_cast<size_t>(
      std::partition_point(graph.steps.begin(), graph.steps.end(), [&](const GraphStep& s) { return s.end <= op; }) -
      graph.steps.begin());
}

// The median of a sorted list without its element `own`. Expects at least two.
inline double median_of_others(const std::vector<double>& sorted, size_t own) {
  const auto other = [&](size_t i) { return sorted[i < own ? i : i + 1]; };
  const size_t n = sorted.size() - 1;
  return (other((n - 1) / 2) + other(n / 2)) / 2;
}

void draft_positions(const CauseScene& scene, std::vector<CauseDraft>& out);
void draft_routing(const CauseScene& scene, std::vector<CauseDraft>& out);
void draft_all_slow(const CauseScene& scene, std::vector<CauseDraft>& out);
void draft_sequences(const CauseScene& scene, std::vector<CauseDraft>& out);
void draft_slow_workers(CauseScene& scene, std::vector<CauseDraft>& out);  // divides them out of scene.times
void draft_slow_stages(const CauseScene& scene, std::vector<CauseDraft>& out);
// Late ranks, pauses and late starts everywhere; messages that nobody recorded and that are late. Tells the workers
// that are late, and by how much.
using LateWorkers = std::vector<std::pair<uint32_t, double>>;
LateWorkers draft_delays(const CauseScene& scene, std::vector<CauseDraft>& out);
void draft_slow_links(const CauseScene& scene, const LateWorkers& late, std::vector<CauseDraft>& out);

}  // namespace stageline
