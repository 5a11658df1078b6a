// Steps that took far longer than the others, each with what made it so, where one thing did: a message, a late start,
// a cell, a rank, ranks that belong together, a link, or all of it together. Part of causes.
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
  kReplica,  // those of all ranks of one replica
  kStage,    // of one stage, in several replicas
  kStages,   // of several stages, not half of them more, in all replicas
  kMachine,  // of one machine
  kLink,     // the messages from one stage to another
  kHosts,    // work that started late on several ranks
  kAll,      // on nearly all ranks
};

struct LongStep {
  int32_t step = 0;
  double span_ns = 0, usual_ns = 0;  // of the step; of steps that are not long
  double excess_ns = 0;              // beyond usual, without what other causes explain of it
  double scatter_ns = 0;             // standard deviation of what usual steps take without these causes
  // What the run would win without it. Where all work takes a multiple of the usual, what other causes cost does too,
  // and all of that goes with the step: its span less the usual one's.
  double lost_ns = 0, lost_scatter_ns = 0;
  LongBy by = LongBy::kNothing;
  int32_t from_stage = kUnknown, stage = kUnknown, part = kUnknown;
  uint32_t op = UINT32_MAX;  // of the graph: the message, the cell
  uint32_t cell = kNoCell;
  size_t replicas = 1;         // of a message, start or cell: as many had the same one so long
  std::vector<int32_t> parts;  // of ranks together
  int64_t count = 0;           // of a link: longer messages; of hosts: late starts
  double own_ns = 0,
         others_ns = 0;  // what took so long, and what it usually takes; of ranks their compute cells in sum
  double late_ns = 0;    // of ranks: what their cells started later than usual, in sum
  double share = 0;      // of the excess, that goes with it
  // Of ranks: their host rather than their devices, for they start late more than they compute long.
  bool by_host() const { return late_ns > own_ns - others_ns; }
};

// Times of an operation in the world without the causes that were found.
using OpWorld = std::function<void(uint32_t op, double& dur_ns, double& delay_ns)>;

// `steps`: of the graph, with span, usual and excess filled in by the caller. Replays some twenty worlds of each.
void explain_long_steps(const CauseScene& scene, const OpWorld& world, const std::vector<size_t>& steps,
                        std::vector<LongStep>& out);

}  // namespace stageline
