// Place: where something is wrong, as data. A finding has places; the page lights them, SQL lists them, two runs are
// compared by them.
//
//     {kLink, from_stage 1, stage 2, replica 3}    the messages from stage 1 to stage 2 of replica 3
//     {kRanks, ranks 4 5 6, name "node-b"}         three ranks, all those of one machine
//
// A cause relates to places in three ways. And: stages 1 and 2 are slow (a list of places). Or: that link, or the host
// that receives (a second list, or_else). In: a call in an operator in a frame (an ordered list, the innermost first).
#pragma once

#include "model/cells.h"

namespace stageline {

enum class PlaceKind : uint8_t {
  kRun,
  kStage,
  kRanks,
  kReplicas,
  kHost,  // of some ranks, or of all
  kLink,
  kMicroBatches,
  kCells,
  kSteps,
  kBetweenSteps,
  kCollective,
  kOptimizer,
  kOperator,
  kCall,
  kFrame,
  kStream,
};

struct Place {
  PlaceKind kind = PlaceKind::kRun;
  std::vector<int32_t> ranks;  // global ranks, never indexes of parts; empty: they follow from the rest
  // On a link, from_stage sends and stage receives. kUnknown: it does not apply.
  int32_t stage = kUnknown, chunk = kUnknown, replica = kUnknown, from_stage = kUnknown;
  bool both_ways = false;                     // of a link whose direction cannot be determined; from_stage < stage
  int32_t first = kUnknown, last = kUnknown;  // of micro-batches, cells, or steps
  CellKind cells = CellKind::kOther;          // which work; kOther: all
  std::string name;                           // as recorded: the collective, call, frame, machine, phase
};

// "link", "micro_batches": the name of the kind in JSON and SQL.
std::string_view place_kind_name(PlaceKind kind);

// Returns whether places of two runs are the same. Members that one of the runs does not know (a replica, a rank) do
// not count.
bool same_place(const Place& a, const Place& b);
// Places of two lists that are one and the same, in the order of `some`. Places without a name (a host without its
// rank) are left out.
std::vector<Place> shared_places(const std::vector<Place>& some, const std::vector<Place>& others);

// "link:1-2": one word for labels, of Prometheus and of a history. It is made from the data and never read back.
std::string key_of(const Place& place);

}  // namespace stageline
