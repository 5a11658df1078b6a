// Experts of a profile whose all-to-alls say how many rows went to each rank: rows, time a row and time outside of
// experts against the other ranks of the group, and which cause makes the others wait.
//
//     ▐▐ outside ▐▐│dispatch│▐▐ experts ▐▐│combine│▐▐ outside ▐▐│dispatch│…
#pragma once

#include "facts/profile_facts.h"
#include "model/finding.h"
#include "model/table.h"

namespace stageline {

struct ExpertCause {
  std::string name;  // "experts rank 3", "rank:3", "kernel rank 3", "sequences rank 3", "link rank 3", "routing"
  int32_t rank = -1;
  Text how;
  double ratio = 0, cost = 0;  // to the other ranks; share of the time of the exchanges
};

struct ExpertExchanges {
  std::vector<std::vector<Table::Value>> ranks;  // rows of the table experts
  std::vector<ExpertCause> causes;               // that cost kMinLost or more, the costliest first
  bool known = false;                            // some exchange says its rows
  bool differs = false;                          // ranks do not all receive equally many
};

// A combine is an exchange that sends back what the dispatch before it brought. Costs are of a replay of the exchanges
// of the group, in which each ends when its last rank has come.
ExpertExchanges expert_exchanges(const LedgerOfRun& run);

// Adds the cause to the finding that has its cost: a slow rank, waiting in collectives, exposed communication.
void explain_by_experts(const LedgerOfRun& run, std::vector<Finding>& list);

}  // namespace stageline
