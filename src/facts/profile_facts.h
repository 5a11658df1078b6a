// Facts about the profile of a run, each made once per Run: the ledger of its communication, the calls of its flight
// recorders, and its call trees.
#pragma once

#include "facts/run.h"
#include "profile/call_tree.h"
#include "profile/flight_match.h"
#include "profile/ledger.h"

namespace stageline {

struct LedgerOfRun {
  TorchRun torch;
  Ledger ledger;
};
// All steps of the ranks asked for; empty where the trace has no profiler slices. The ledger is made when first asked.
const LedgerOfRun& ledger_of(const Run& run);

// Returns the calls of the run's flight recorders, matched over ranks; made when first asked.
const FlightReport& flight_of(const Run& run);

// Returns true when some rank has calls to add up: slices with the profiler's own facts on threads of the host.
bool has_calls(const Trace& trace);

// Returns one tree for each part of the trace; a part without slices has a tree of its root alone.
const std::vector<CallTree>& call_trees_of(const Run& run);

}  // namespace stageline
