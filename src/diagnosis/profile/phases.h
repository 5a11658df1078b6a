// Phases that frameworks name in traces of hosts alone: what a step of training or of reinforcement learning, or a
// request of a server, is spent on.
#pragma once

#include "model/trace.h"

namespace stageline {

struct PhaseTime {
  std::string part;         // "phase-rollout": the id of a line of the bar, profile.part.phase-rollout
  std::string name;         // "generate", by its name in the trace
  size_t step = 0;          // index into Part::steps, or of the request
  double ns = 0;            // without phases within it
  int32_t tail = kUnknown;  // of "phase-tail": which of rollout_tails()
};

// The end of a rollout, in which one trajectory alone still runs: from the end of the last but one to its own.
struct RolloutTail {
  int64_t start_ns = 0, end_ns = 0;
  int32_t rank = 0;  // that generates the trajectory
  std::string name;  // its own
  int64_t dur_ns = 0;
  std::vector<int64_t> others_ns;  // the lengths of the others of that rollout, sorted
};
// A rollout begins and ends where no trajectory runs on any rank. Empty where ranks have zeros of their own.
std::vector<RolloutTail> rollout_tails(const Trace& trace);

struct PhaseTimes {
  std::vector<double> lengths;  // of the steps or requests
  std::vector<PhaseTime> phases;
};

// Phases of a rank's steps, or of its requests. Another range counts to the phase around it; waiting that outlasts a
// tail is a phase of its own during it. Empty where no phase is named, and where operators say more.
PhaseTimes phase_times(const Trace& trace, const std::vector<RolloutTail>& tails, const Part& part);

}  // namespace stageline
