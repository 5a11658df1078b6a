// The search for causes: the input of all kinds, and their suspicions. A suspicion is a cause without a price, with a
// scenario in which it is gone. causes_of() replays these scenarios and keeps the causes that cost enough.
#pragma once

#include "diagnosis/causes/carried_tails.h"
#include "diagnosis/causes/cause_kind.h"
#include "diagnosis/causes/cell_times.h"
#include "diagnosis/causes/peer_work.h"
#include "model/statistics.h"
#include "pipeline/measure/run_coverage.h"
#include "pipeline/measure/step_periods.h"
#include "pipeline/replay/step_replay.h"

namespace stageline {

// Changes operations' times into those of a world without the cause. Copies are one and the same change.
class CauseWorld {
 public:
  CauseWorld() = default;
  // change(op, dur_ns, delay_ns) changes the times of one operation.
  template <std::invocable<uint32_t, double&, double&> Change>
  CauseWorld(Change change)  // NOLINT(google-explicit-constructor): it is assigned like a function
      : apply_(std::make_shared<Apply>([change = std::move(change)](const WorldStretch& s) {
          double *dur = s.dur_ns, *delay = s.delay_ns;
          for (uint32_t op = s.begin; op < s.end; ++op, dur += s.width, delay += s.width) change(op, *dur, *delay);
        })) {}

  // Changes what ranks that meet inside a cell do there: change(cell, own work, transfers), see PeerCells.
  using Inside = std::function<void(const PeerCell&, std::span<double>, std::span<double>)>;
  static CauseWorld inside(Inside change) {
    CauseWorld world([](uint32_t, double&, double&) {});
    world.inside_ = std::make_shared<const Inside>(std::move(change));
    return world;
  }

  explicit operator bool() const { return apply_ != nullptr; }
  // Changes the first world of the stretch.
  void apply(const WorldStretch& stretch) const { (*apply_)(stretch); }
  void apply_inside(const PeerCell& cell, std::span<double> own_ns, std::span<double> transfer_ns) const {
    if (inside_) (*inside_)(cell, own_ns, transfer_ns);
  }
  std::strong_ordering operator<=>(const CauseWorld&) const = default;

 private:
  using Apply = std::function<void(const WorldStretch&)>;
  std::shared_ptr<const Apply> apply_;
  std::shared_ptr<const Inside> inside_;
};

// The world without either, of causes outside of cells.
inline CauseWorld both(const CauseWorld& first, const CauseWorld& second) {
  return [first, second](uint32_t op, double& dur, double& delay) {
    const WorldStretch own{op, op + 1, 0, 1, 1, &dur, &delay};
    first.apply(own), second.apply(own);
  };
}

struct Suspect {
  Cause cause;
  CauseWorld without = {}, evened = {};  // without the cause; with its work evened out (may be empty)
  CauseWorld otherwise = {};  // without the cause by another reading of what would then be normal; may be empty
};

// Holds the input of all kinds. Scenarios keep references to it, so it must outlive them.
struct CauseScene {
  const Trace& trace;
  const StepGraph& graph;
  const std::vector<bool>& counts;  // for each step of the graph
  const RunCoverage& coverage;
  CellTimes times;
  const PeerWork& peers;
  bool two_ways = false;  // micro-batches enter at both ends of the pipeline

  // A measurement that several kinds read, T(const CauseScene&): made when the first of them asks.
  template <class T> const T& measured() const {
    static char key;
    std::shared_ptr<const void>& made = measurements[&key];
    if (!made) made = std::make_shared<const T>(*this);
    return *static_cast<const T*>(made.get());
  }
  mutable std::map<const void*, std::shared_ptr<const void>> measurements = {};
  const CarriedTails carried{graph};

  // Returns whether the delay of a compute cell shows its rank or its message to be late. The cell waits for something,
  // all that it waits for was read, it occurs once, and its rank was done with the step before.
  bool tells_delay(uint32_t op) const {
    return times.worker_of(op) != CellTimes::kNone && !graph.waits(op).empty() && !carried.held.contains(op) &&
           (graph.cell[op] == kNoCell || (coverage.fed(graph.cell[op]) && !coverage.repeated(graph.cell[op])));
  }
  // Returns whether work that was not read is a part of a message's time or of a cell's delay. The message goes past
  // missing ranks; the cell's input, or its rank's work before it, was not read. O(log steps).
  bool holds_unread(uint32_t op) const {
    if (coverage.whole()) return false;
    if (is_compute(graph.kind[op])) return graph.cell[op] != kNoCell && !coverage.fed(graph.cell[op]);
    return graph.cell[op] == kNoCell && is_message(graph.kind[op]) && times.chunks() == 1 && !graph.waits(op).empty() &&
           std::abs(graph.stage(graph.waits(op).front()) - graph.stage(op)) > 1;
  }
  template <class Body>
  // Calls body(op, step of the graph) for operations of the steps that count.
  void each_op(const Body& body) const {
    for (size_t s = 0; s < graph.steps.size(); ++s)
      for (uint32_t op = graph.steps[s].begin; counts[s] && op < graph.steps[s].end; ++op) body(op, s);
  }
};

// A cause explains a long step only as far as usual steps know it. A delay of more than this many times the largest one
// in any usual step (a hang among pauses) has a reason of its own.
inline constexpr double kMaxOfUsual = 2;

inline constexpr double kSlowCause = 1.05;  // minimum ratio of a slow stage or worker to the others
// A start is late if its delay exceeds the usual one by this share of the median compute cell.
inline constexpr double kLateStart = 0.1;
// Minimum share of the steps in which a place is late, and of all late time that such places hold.
inline constexpr double kEverywhere = 0.8;
inline constexpr int64_t kMinLateCells = 3;  // fewer late cells may be noise, whatever their share is
// If most messages of a link are late in this many steps, at least kMinLateCells in each, and almost none in others,
// these steps are not random.
inline constexpr int64_t kMinWholeSteps = 3;
// Share of a period; one kind of collective, or the optimizer, that takes less is only a line of the breakdown.
inline constexpr double kMinTail = 0.05;
inline constexpr size_t kMaxWorkerCauses = 8;  // at most this many causes of one kind

// Returns the known ratios of those by step, without NaN.
inline std::vector<double> known_ratios(const std::vector<double>& by_step) {
  std::vector<double> ratios;
  std::ranges::copy_if(by_step, std::back_inserter(ratios), [](double r) { return !std::isnan(r); });
  return ratios;
}

// Returns the standard error of what ratios to the others, one per step, exceed 1 by, relative to that; 0: unknown.
inline double excess_error(const std::vector<double>& ratios) {
  const double excess = mean_of(ratios) - 1, error = sample_std(ratios) / std::sqrt(ratios.size());
  return excess > 0 && error > 0 ? error / excess : 0;
}
// Returns whether ratios to the others, one per step, are above 1 beyond doubt: even half of the excess of their mean
// would be above noise. One step alone proves nothing.
inline bool certainly_slow(const std::vector<double>& ratios) {
  const double error = sample_std(ratios) / std::sqrt(ratios.size());
  return ratios.size() > 1 && beyond_noise((mean_of(ratios) - 1) / 2, error, ratios.size());
}

// Returns true with so few steps that their scatter says nothing; then that of cells decides.
inline bool few_steps(const CauseScene& scene) {
  return std::cmp_less_equal(std::ranges::count(scene.counts, true), kMaxFewSteps);
}
// The same by the scatter of single cells: `own` are those of the ratio, `others` those that it is compared with.
inline bool certainly_slow(double ratio, const CellTimes::Scatter& own, const CellTimes::Scatter& others) {
  const double error = std::hypot(own.error, others.error);
  return !std::isnan(error) && beyond_noise((ratio - 1) / 2, error, std::min(own.samples, others.samples));
}

// Returns whether a course of ratios (1: like the others) rises: its high steps reach kSlowCause, and its low ones have
// at most half of that excess. Then the cause is certain, however much the mean over all steps scatters.
inline bool slow_course(const Course& course) {
  const auto [low, high] = std::minmax(course.low, course.high);
  return course.varies() && high >= kSlowCause && low - 1 <= (high - 1) / 2;
}
// Returns what an operation's time is divided by in a step of that course; 1 in its usual steps.
inline double course_factor(const Course& course, size_t step) {
  const double level = course.level[step];
  return level >= (1 + kSlowCause) / 2 ? level : 1;
}
// Tells of the steps that do not count whether they are among the slow ones, where only `some` are: `all` has their
// ratios. Such a step is long for another reason, or a rank did not record it.
inline void see_all_steps(Course& course, std::span<const double> ratios, std::span<const double> all) {
  for (size_t s = 0; course.kind == CourseKind::kSome && s < ratios.size(); ++s)
    if (std::isnan(ratios[s]) && 2 * all[s] > course.low + course.high) course.level[s] = course.high;
}
// Returns whether a shape leaves almost nothing of what is slow to steps that it calls usual. It does not fit a device
// that gets hot or cools down by degrees. `ratios`: of each step, 1 is usual.
inline bool holds_excess(const Course& course, std::span<const double> ratios) {
  constexpr double kMaxMissed = 0.1;
  double all = 0, missed = 0;
  int64_t steps = 0;
  for (size_t s = 0; s < ratios.size(); ++s) {
    if (!(ratios[s] >= kSlowCause)) continue;
    all += ratios[s] - 1;
    if (course_factor(course, s) == 1) missed += ratios[s] - 1, ++steps;
  }
  return steps < 2 || missed < kMaxMissed * all;  // a single step may have been paused
}
// Index of the graph's step that an operation belongs to.
inline size_t step_of(const StepGraph& graph, uint32_t op) {
  return std::ranges::partition_point(graph.steps, [&](const GraphStep& s) { return s.end <= op; }) -
         graph.steps.begin();
}

// The median of a sorted list without its element `own`. Expects at least two.
inline double median_of_others(const std::vector<double>& sorted, size_t own) {
  const auto other = [&](size_t i) { return sorted[i < own ? i : i + 1]; };
  const size_t n = sorted.size() - 1;
  return (other((n - 1) / 2) + other(n / 2)) / 2;
}

// The median of a sorted list without one element of that value. Expects at least two, and that it is one of them.
inline double median_beside(const std::vector<double>& sorted, double own) {
  return median_of_others(sorted, std::ranges::lower_bound(sorted, own) - sorted.begin());
}

// Holds the facts by which a kind judges.
struct JudgeFacts {
  const RunCoverage& coverage;
  const StepPeriods& periods;
  double step_ns;      // the mean step
  double shortest_ns;  // the shortest kind of compute cell, of one micro-batch on its rank
};
// The facts by which causes outside the replay are found.
struct KnownFacts {
  const Trace& trace;
  const StepGraph& graph;
  const std::vector<bool>& counts;
  const TheoryRun& theory;
  const RunCoverage& coverage;
  const StepPeriods& periods;
  const std::vector<int32_t>& step_numbers;
  double shortest_ns;
};

// The shape in time of what a cause costs. It is reported only if the cause has no course of its own and this shape is
// plain. Then the low steps of an onset or of every n-th step cost next to nothing, or a trend at least doubles.
Course when_lost(const Cause& cause, const std::vector<double>& by_step);

}  // namespace stageline
