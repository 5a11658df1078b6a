// Steps that took far longer than the others, each with what made it so, where one thing did: a message, a late start,
// a cell, a rank, or all of it together. Part of causes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "diagnosis/causes/cause_drafts.h"
#include "diagnosis/causes/received_messages.h"

namespace stageline {

enum class LongBy : uint8_t {
  kNothing,  // no one thing
  kMessage,  // one message: a hang, a retransmission
  kPause,    // one cell started late though everything was there
  kLate,     // one cell started late, and nobody recorded the message that it waited for: either of the two
  kCell,     // one cell took long
  kTail,     // one collective or optimizer did
  kRank,     // the cells and starts of one rank
  kAll,      // everything took longer
};

struct LongStep {
  int32_t step = 0;
  double span_ns = 0, usual_ns = 0;  // of the step; of steps that are not long
  double excess_ns = 0;              // beyond usual, without what other causes explain of it
  LongBy by = LongBy::kNothing;
  int32_t from_stage = kUnknown, stage = kUnknown, part = kUnknown;
  uint32_t op = UINT32_MAX;  // of the graph: the message, the cell
  uint32_t cell = kNoCell;
  double own_ns = 0, others_ns = 0;  // what took so long, and what it usually takes
  double share = 0;                  // of the excess, that goes with it
};

// Times of an operation in the world without the causes that were found.
using OpWorld = std::function<void(uint32_t op, double& dur_ns, double& delay_ns)>;

// `steps`: of the graph, with span, usual and excess filled in by the caller. Replays some twenty worlds of each.
void explain_long_steps(const CauseScene& scene, const OpWorld& world, const std::vector<size_t>& steps,
                        std::vector<LongStep>& out);

}  // namespace stageline
