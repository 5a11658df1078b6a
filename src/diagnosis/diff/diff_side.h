// One of the two runs that run_diff compares, and the pairs of their steps. Part of run_diff.
#pragma once

#include "model/statistics.h"
#include "pipeline/measure/step_periods.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

struct Side {
  const Trace& trace;
  StepGraph graph;
  std::vector<bool> usual;      // for each step of the graph: true: not an outlier
  std::vector<size_t> steps;    // indexes of the usual steps
  std::vector<double> step_ns;  // their times
  StepPeriods periods;
  double long_ns = 0;  // what outliers take beyond the usual steps, as a mean over all steps
};

// `name` is "A" or "B": notes and errors name the run by it. Errors: kBadInput, as of diff_runs().
Result<Side> side_of(const Trace& trace, const char* name, Diagnostics& notes);

// Standard error of the mean of values that are measured once per step. A shape (every third step is slow, or all from
// one step on) is not random; only what it leaves unexplained is.
double standard_error(const std::vector<double>& values, int64_t independent);

// Returns the same of the mean step by the scatter of single cells and their starts on the rank that scatters most: all
// that few steps show of it. O(operations).
double error_by_cells(const Side& side);

// Pairs of steps (A's and B's), and mean changes over them.
class Pairs {
 public:
  Pairs(const Side& a, const Side& b) : b_(b), pair_of_(b.graph.steps.size(), -1) {
    for (size_t k = 0; k < b.steps.size(); ++k) pair_of_[b.steps[k]] = a.steps[k * a.steps.size() / b.steps.size()];
    independent_ = std::min(a.steps.size(), b.steps.size());
  }
  const std::vector<int64_t>& pair_of() const { return pair_of_; }
  // Number of pairs that share no step, which is what a standard error may count.
  int64_t independent() const { return independent_; }

  // Mean of to(s) − from(s) over the compared steps of B, and its standard error.
  template <class From, class To> std::pair<double, double> change(const From& from, const To& to) const {
    auto changes = mapped<double>(b_.steps, [&](const size_t s) { return to(s) - from(s); });
    return {mean_of(changes), standard_error(changes, independent_)};
  }

 private:
  const Side& b_;
  std::vector<int64_t> pair_of_;
  int64_t independent_ = 0;
};

}  // namespace stageline
