// Collectives of a job by group and kind, with what each takes whatever its size.
#pragma once

#include "facts/profile_facts.h"
#include "profile/expected_transfer.h"

namespace stageline {

// Collectives of one kind in one group, by start.
struct TransferCalls {
  CollectiveKind kind = CollectiveKind::kUnknown;
  const LedgerGroup* group = nullptr;
  std::vector<const LedgerInstance*> list;
  double latency_ns = 0;  // what each takes whatever its size; 0: unknown
  bool measured = false;  // by calls of sizes that are far apart
};
// Calls of steps that are complete, of a known group and of a known size.
std::vector<TransferCalls> transfer_calls(const LedgerOfRun& run);
bool is_complete_transfer(const LedgerOfRun& run, const LedgerInstance& instance);

const Fabric* fabric_of(const LedgerOfRun& run);  // by the device of its first rank; nullptr: unknown
TransferRoute route_of(const LedgerOfRun& run, CollectiveKind kind, const LedgerGroup& group, const Fabric* fabric);
// The time of a transfer by its route; 0 where it is not known what the devices reach.
double expected_or_zero_ns(const TransferRoute& route, int64_t bytes);

std::string kind_text(CollectiveKind kind);

}  // namespace stageline
