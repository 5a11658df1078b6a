// Whether something changed between the steps of two runs, above noise.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// A step this much longer than the median is left out where one long step would hide what all others show.
inline constexpr double kLongStep = 1.3;

class ChangeOfSteps {
 public:
  // `lengths_a` and `lengths_b`: of the runs' steps. Changes of less than `min_ns` count as none.
  ChangeOfSteps(const std::vector<double>& lengths_a, const std::vector<double>& lengths_b, double min_ns);

  // Pairs of steps that the judgement rests on.
  int64_t steps() const { return steps_; }
  double min_ns() const { return min_ns_; }
  // The standard error of the difference of both means.
  static double error_ns(const std::vector<double>& a, const std::vector<double>& b);

  // Returns how much of a change is beyond noise: all of it by the scatter of all steps, or the change of the usual
  // steps by theirs, because one long step hides what all others show. 0 where neither is beyond noise. `a` and `b` are
  // values of each step.
  double certain_ns(double change_ns, const std::vector<double>& a, const std::vector<double>& b) const;
  bool is_sure(double change_ns, const std::vector<double>& a, const std::vector<double>& b) const {
    return certain_ns(change_ns, a, b) != 0;
  }

 private:
  const std::vector<bool> usual_a_, usual_b_;  // for each step: it is not a long one
  const int64_t steps_;
  const double min_ns_;
};

}  // namespace stageline
