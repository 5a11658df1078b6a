// Work after the pipeline that runs on into the next step, where no barrier ends a step. The rank that does it starts
// its next step when it is done; other ranks started theirs earlier. Part of causes.
//
//   stage 0   ▐▐ step 3 ▐▐│ reduction │▐▐ step 4 ▐▐▐▐        the long reduction costs what it makes stage 1 late in
//   step 4, stage 1   ▐▐ step 3 ▐▐│──── reduction ────│▐▐ step 4     and not what it takes: other ranks do not wait for
//   its end
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "pipeline/replay/graph_ops.h"

namespace stageline {

struct CarriedTails {
  explicit CarriedTails(const StepGraph& graph);

  struct Held {
    double ns = 0;                // the part of the delay during which the rank's tails of the step before ran
    std::vector<uint32_t> tails;  // these
  };
  std::map<uint32_t, Held> held;  // by the first compute operation of a rank's step
  std::set<uint32_t> carried;     // tails that run on into the next step, or would if there were one

  // Takes time from tails, and from what carried ones hold up: saved(op) is how much shorter the tail `op` becomes.
  void shorten(uint32_t op, const std::function<double(uint32_t)>& saved, double& dur, double& delay) const;
};

}  // namespace stageline
