// Work after the pipeline that runs on into the next step, where no barrier ends a step. The rank that does it starts
// its next step when it is done; other ranks started theirs earlier. Part of causes.
//
//   stage 0   ▐▐ step 3 ▐▐│ reduction │▐▐ step 4 ▐▐▐▐        the long reduction costs what it makes stage 1 late in
//   step 4, stage 1   ▐▐ step 3 ▐▐│──── reduction ────│▐▐ step 4     and not what it takes: other ranks do not wait for
//   its end
#pragma once

#include "pipeline/replay/graph_ops.h"

namespace stageline {

struct CarriedTails {
  explicit CarriedTails(const StepGraph& graph);

  struct Held {
    double ns = 0;                // the part of the delay during which the rank's tails of the step before ran
    std::vector<uint32_t> tails;  // these
  };
  std::map<uint32_t, Held> held;       // by the first compute operation of a rank's step
  std::map<uint32_t, size_t> carried;  // tails that run on into the next step, or would if there were one → their step

  // The scenario in which each tail `op` is shorter by saved(op). A carried one is shorter by what the first rank to be
  // done with its tails saves: no rank's next step begins before. Beyond that, what it held up is less late.
  class Shorter {
   public:
    Shorter(const CarriedTails& tails, std::function<double(uint32_t)> saved);
    void apply(uint32_t op, double& dur, double& delay) const;

   private:
    // 0 in a step of which compute alone runs on.
    double earlier(size_t step) const { return value_at(earlier_, step); }

    const CarriedTails& tails_;
    std::function<double(uint32_t)> saved_;
    std::map<size_t, double> earlier_;  // by step with carried tails: how much earlier the first rank is done
  };

 private:
  struct RankEnd {
    int64_t end_ns = INT64_MIN;
    std::vector<uint32_t> ops;  // all its work but compute and messages
  };
  std::map<size_t, std::map<int32_t, RankEnd>> ends_;  // by step with carried tails, then part
};

}  // namespace stageline
