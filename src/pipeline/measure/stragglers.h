// Finds ranks that delay others and classifies how: always, in some steps, by pauses, by late launches, or by their
// load (long sequences, a heavy stage). diagnosis/causes computes the cost. Definitions: docs/analyses/stragglers.md.
#pragma once

#include "pipeline/measure/run_coverage.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

enum class StragglerVerdict : uint8_t {
  kFine,
  kPersistent,  // slower than its peers in at least kStragglerSteps of its steps
  kSometimes,   // slower than its peers in some steps
  kLateLaunch,  // all its cells start later than they could
  kPauses,      // some of its cells start much later than they could
  kAlone,       // no other rank holds its stage: slow rank and slow stage cannot be distinguished
};
std::string_view straggler_verdict_name(StragglerVerdict verdict);  // "persistent", "late launches", …

// A ratio counts only if it also exceeds 1 by four of its standard errors.
inline constexpr double kStragglerRatio = 1.05;     // minimum ratio of a slow worker to its peers
inline constexpr double kStragglerSteps = 2.0 / 3;  // share of its steps in which a persistent one is slow
inline constexpr double kCorrelated = 0.9;          // minimum correlation of forwards and backwards that counts
inline constexpr double kMinSpread = 0.05;  // minimum spread of forwards within a step; below it, correlation is noise
inline constexpr int64_t kMinPairs = 8;

struct StragglerWorker {
  int32_t part = 0;
  // Steps with compute cells, outliers left out; those in which it is slower than its peers by kStragglerRatio.
  int64_t steps = 0, slow_steps = 0;
  double busy_ns = 0;     // mean over steps
  double busy_ratio = 1;  // to the mean over all workers of its stage; NaN without peers
  double ratio = 1;  // to the median of its peers; of all that it computes and of its usual cells, the smaller ratio
  double error = 0;  // standard error of `ratio`, from the scatter of its cells
  double s_w = 1;    // its S_w, as `slowdown` has it; NaN: was not asked for
  int64_t cells = 0, pauses = 0;  // compute cells except the first of each step; those that start after a pause
  double pause_ns = 0;            // sum of all its pauses
  double period_ns = 0;           // time between pauses where that is steady; otherwise NaN
  double late_ns = 0;             // lower quartile of how much later its cells start than they could
  StragglerVerdict verdict = StragglerVerdict::kFine;
  // Returns the time of a mean step beyond its peers: longer cells, pauses and, where all its cells start late, these
  // delays.
  double beyond_ns() const;
};

struct StragglerStep {  // one stage in one step
  int32_t step = 0, stage = 0;
  double busy_ns = 0;         // mean over workers
  double ratio = 1;           // to the stage's median step
  int32_t slowest_part = -1;  // -1: the stage has one worker
  double slowest_ratio = 1;   // to the median of the others
  bool slow = false;          // the slowest worker's ratio exceeds what scatter explains
};

// Compares forwards with backwards, for one stage: each micro-batch is compared with the mean of those of the same rank
// and step.
struct FbCorrelation {
  int32_t stage = 0;
  int64_t pairs = 0;
  double r = 0;       // NaN: too few pairs, or all alike
  double spread = 0;  // standard deviation of the forwards, as a share of their mean
  bool data_dependent = false;
};

// A step that the means leave out (PipelineSums::outliers).
struct SlowStep {
  int32_t step = 0;
  double ratio = 1;    // to the median step
  double lost_ns = 0;  // time beyond the median step, spread over all steps
};

struct Stragglers {
  std::vector<StragglerWorker> workers;     // for each part that computes and has a known stage
  std::vector<StragglerStep> steps;         // by step, then stage
  std::vector<FbCorrelation> correlations;  // by stage
  std::vector<SlowStep> slow_steps;         // by step
};

// `graph`, `coverage` and `sums` belong to the same trace. O(cells log cells).
Stragglers find_stragglers(const Trace& trace, const StepGraph& graph, const RunCoverage& coverage,
                           const PipelineSums& sums);

// Indexes into `workers` of those that take anything beyond their peers: first the ones with a verdict, then the
// others, each worst first, equal ones in order of parts.
std::vector<size_t> worst_workers(const Stragglers& stragglers);

// Returns the text of a row about a worker: "1.50× its peers, slow in 8 of 8 steps".
Text straggler_words(const StragglerWorker& worker);

}  // namespace stageline
