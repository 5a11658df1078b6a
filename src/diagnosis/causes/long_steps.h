// Steps that took far longer than the others, each with its reason if there was a single one. It is a message, a late
// start, a cell, a rank, ranks that belong together, a link, or all work. Part of causes.
#pragma once

#include "diagnosis/causes/received_messages.h"
#include "diagnosis/causes/suspect.h"

namespace stageline {

enum class LongBy : uint8_t {
  kNothing,  // it was no single thing
  kMessage,  // one message: a hang, a retransmission
  kPause,    // one cell started late though everything that it needs was there
  kLate,     // one cell started late, and the message that it waited for was not recorded: kMessage or kPause
  kUnread,   // one cell started late, and the sender of its input was not read
  kCell,     // one cell took long
  kTail,     // one collective or optimizer took long
  kRank,     // the cells and starts of one rank
  kReplica,  // the cells and starts of all ranks of one replica
  kStage,    // those of one stage, in several replicas
  kStages,   // those of several stages, at most half of all, in all replicas
  kMachine,  // those of all ranks of one machine
  kLink,     // the messages from one stage to another
  kHosts,    // work that started late on several ranks
  kAll,      // the cells and starts of nearly all ranks
};

struct LongStep {
  int32_t step = 0;
  double span_ns = 0, usual_ns = 0;  // of this step; of steps that are not long
  int32_t usual_step = kUnknown;     // of the longest of a few steps: the shortest, whose time is usual_ns
  double excess_ns = 0;              // span beyond the usual one, without what other causes explain of it
  double scatter_ns = 0;             // standard deviation of usual steps once these causes are removed
  // The saving of the run without this long step. If all work takes a multiple of its usual time, so do the costs of
  // other causes, which go with the step. This is the span minus the usual one.
  double lost_ns = 0, lost_scatter_ns = 0;
  LongBy by = LongBy::kNothing;
  int32_t from_stage = kUnknown, stage = kUnknown, part = kUnknown;
  uint32_t op = UINT32_MAX;  // in the graph: the message or the cell
  uint32_t cell = kNoCell;
  size_t replicas = 1;         // of a message, start or cell: number of replicas in which the same one took as long
  std::vector<int32_t> parts;  // where several ranks together are the reason
  int64_t count = 0;           // of a link: messages that took longer; of hosts: late starts
  double own_ns = 0,
         others_ns = 0;  // time of what took so long, and its usual time; of ranks: sums over their compute cells
  double late_ns = 0;    // of ranks: how much later than usual their cells started, in total
  double share = 0;      // share of the excess that goes away with it
  // Of ranks: whether the host causes the delay and not the device, because they lost more by late starts than by long
  // cells.
  bool by_host() const { return late_ns > own_ns - others_ns; }
};

// Gives the times of an operation in the scenario without the causes that were found.
using OpWorld = std::function<void(uint32_t op, double& dur_ns, double& delay_ns)>;

// `steps` are indexes of the graph's steps whose span, usual and excess the caller has filled in; `usual` tells which
// steps are not long. About twenty worlds are replayed for each.
void explain_long_steps(const CauseScene& scene, const OpWorld& world, const std::vector<bool>& usual,
                        const std::vector<size_t>& steps, std::vector<LongStep>& out);

}  // namespace stageline
