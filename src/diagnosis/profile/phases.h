// Phases that frameworks name in traces of hosts alone: what a step of training or of reinforcement learning, or a
// request of a server, is spent on.
#pragma once

#include <string>
#include <vector>

#include "model/trace.h"

namespace stageline {

struct PhaseTime {
  std::string part;  // "phase-rollout": the id of a line of the bar, profile.part.phase-rollout
  std::string name;  // "generate", as the trace has it
  size_t step = 0;   // index into Part::steps, or of the request
  double ns = 0;     // without phases within it
};

struct PhaseTimes {
  std::vector<double> lengths;  // of the steps or requests
  std::vector<PhaseTime> phases;
};

// Phases of a rank's steps. Another range counts to the phase around it. Where the rank has requests, of these.
// Empty where no phase is named, and where operators say more.
PhaseTimes phase_times(const Trace& trace, const Part& part);

}  // namespace stageline
