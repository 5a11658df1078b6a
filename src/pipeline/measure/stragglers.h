// Which workers hold the others up, and by what sign: always, now and then, by pauses, by late launches, or not by
// themselves at all (long sequences, a heavy stage). What that costs is diagnosis/causes/causes'. Definitions:
// docs/analyses/stragglers.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/pipeline_sums.h"
#include "pipeline/measure/run_coverage.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

enum class StragglerVerdict : uint8_t {
  kFine,
  kPersistent,  // slower than its peers in most steps
  kNowAndThen,  // in some
  kLateLaunch,  // its cells start later than they could, all of them
  kPauses,      // some of them, by much
  kAlone,       // no other rank holds its stage: slow worker and slow stage cannot be told apart
};
std::string_view straggler_verdict_name(StragglerVerdict verdict);  // "persistent", "now and then", …

// Thresholds. A ratio must also be beyond four standard errors of itself.
inline constexpr double kStragglerRatio = 1.05;     // of a worker to its peers
inline constexpr double kStragglerSteps = 2.0 / 3;  // of its steps, to be persistent
inline constexpr double kCorrelated = 0.9;          // of forwards and backwards
inline constexpr double kLeastSpread = 0.05;        // of forwards within a step, below which correlation is noise
inline constexpr int64_t kLeastPairs = 8;

struct StragglerWorker {
  int32_t part = 0;
  int64_t steps = 0, slow_steps = 0;  // with compute cells, outliers left out; slower than peers by kStragglerRatio
  double busy_ns = 0;                 // mean over steps
  double busy_ratio = 1;              // to the mean over all workers of its stage; NaN without peers
  double ratio = 1;                   // to the median of its peers: the smaller of all it computes and its usual cells
  double error = 0;                   // standard error of ratio, by the scatter of its cells
  double s_w = 1;                     // what `slowdown` says; NaN: not asked
  int64_t cells = 0, pauses = 0;      // compute cells but the first of a step; of them those that a pause precedes
  double pause_ns = 0;                // in all
  double period_ns = 0;               // between pauses, where it is steady; NaN
  double late_ns = 0;                 // lower quartile of what its cells start later than they could
  StragglerVerdict verdict = StragglerVerdict::kFine;
  // What it takes of a mean step beyond its peers: longer cells, pauses, and where all its cells start late these starts.
  double beyond_ns() const;
};

struct StragglerStep {  // one stage in one step
  int32_t step = 0, stage = 0;
  double busy_ns = 0;         // mean over workers
  double ratio = 1;           // to the stage's median step
  int32_t slowest_part = -1;  // -1: one worker
  double slowest_ratio = 1;   // to the median of the others
  bool slow = false;          // beyond what scatter explains
};

// Do long forwards have long backwards? Of one stage: micro-batches of one worker and step, each against their mean.
struct FbCorrelation {
  int32_t stage = 0;
  int64_t pairs = 0;
  double r = 0;       // NaN: no spread, or too few
  double spread = 0;  // standard deviation of the forwards, as a share of their mean
  bool data_dependent = false;
};

// A step that the means leave out (PipelineSums::outliers).
struct SlowStep {
  int32_t step = 0;
  double ratio = 1;    // to the median step
  double lost_ns = 0;  // beyond the median step, spread over all steps
};

struct Stragglers {
  std::vector<StragglerWorker> workers;     // by part; those that compute and have a place
  std::vector<StragglerStep> steps;         // by step, then stage
  std::vector<FbCorrelation> correlations;  // by stage
  std::vector<SlowStep> slow_steps;         // by step
};

// `graph` and `coverage` of the same trace. O(cells log cells).
Stragglers find_stragglers(const Trace& trace, const StepGraph& graph, const RunCoverage& coverage,
                           const PipelineSums& sums);

// The workers that take anything beyond their peers, the worst first, of equal ones by part: those with a verdict, then
// the others. Indexes into `workers`.
std::vector<size_t> worst_workers(const Stragglers& stragglers);

// What a worker is, for its row: "1.50× its peers, slow in 8 of 8 steps".
std::string straggler_words(const StragglerWorker& worker);

}  // namespace stageline
