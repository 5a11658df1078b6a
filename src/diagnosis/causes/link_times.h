// The times of messages on every link: links that are slow compared with the others, and messages that are late
// compared with others of their link. Part of causes.
#pragma once

#include "diagnosis/causes/suspect.h"
#include "pipeline/measure/op_values.h"

namespace stageline {

using StagePair = std::pair<int32_t, int32_t>;              // from, to
using ReplicaLink = std::tuple<int32_t, int32_t, int32_t>;  // replica, from, to

// The stage on the other side of a message; kUnknown: not known, or stages between the two were not read, whose work is
// in its time. With chunks, the last stage sends to the first. O(1).
int32_t other_end_read(const StepGraph& graph, uint32_t op, bool chunked);

// Transfers of each link: the median of each replica, and the link that each operation belongs to.
struct Transfers {
  std::map<StagePair, std::vector<std::pair<double, int32_t>>> links;  // (median, replica)
  std::map<ReplicaLink, uint32_t> index;
  std::vector<double> median_ns;                 // for each index; NaN: no rank received
  std::vector<double> max_ns;                    // for each index, the longest one in steps that count
  std::shared_ptr<RawValues<uint32_t>> edge_of;  // for each operation an index, or CellTimes::kNone
  bool recorded = false;                         // true where messages were recorded
};

// A link whose median message is slow.
struct SlowTransfer {
  StagePair link;
  double own_ns = 0, others_ns = 0;
  int32_t dp = kUnknown;                    // set where it is slow in this replica only
  std::map<uint32_t, double> factors = {};  // for each edge, the others' time ÷ its own
};

// A link with messages that are late compared with its fast ones. If nearly all messages of some steps are late, the
// link is slow in those steps; otherwise single messages are late.
struct LateTransfer {
  StagePair link;
  bool slow = false;                       // the link is slow: in nearly all messages, or in whole steps
  bool shaped = false;                     // its times follow a shape over the steps
  int32_t part = kUnknown, dp = kUnknown;  // of the last late one; the only replica that has late ones
  int64_t count = 0, of = 0;
  int64_t whole_steps = 0, steps = 0;
  double each_ns = 0;                // mean excess of a late one
  double own_ns = 0, others_ns = 0;  // of a slow link
  bool certain = false;
  LateLengths lengths = {};
  // Where ranks wait for their own sends: for each operation, how much longer such a send took than fast ones do.
  std::map<uint32_t, double> held = {};
  CauseWorld without = {};
};

struct LinkTimes {
  explicit LinkTimes(const CauseScene& scene);

  Transfers all;
  std::vector<SlowTransfer> slow;  // the slowest first
  std::vector<LateTransfer> late;

  // Returns whether messages show in nearly every step that a link is slow; how much that costs may differ
  // between steps.
  bool slow_in_nearly_every_step(const CauseScene& scene, const SlowTransfer& link) const;

  // Where ranks wait for their own sends: for each operation, how much of that is because the link is slow.
  std::map<uint32_t, double> held_up(const CauseScene& scene, const SlowTransfer& link) const;
};

// The place of a link that is late or slow.
Place place_of(const StagePair& link, int32_t replica);

}  // namespace stageline
