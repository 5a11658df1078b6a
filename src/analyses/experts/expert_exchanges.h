// Experts of a profile whose all-to-alls say how many rows went to each rank: rows, time a row and time outside of
// experts against the other ranks of the group, and which cause makes the others wait.
//
//     ▐▐ outside ▐▐│dispatch│▐▐ experts ▐▐│combine│▐▐ outside ▐▐│dispatch│…
#pragma once

#include "facts/profile_facts.h"
#include "model/table.h"

namespace stageline {

// Adds rows to the tables experts and expert-causes. A combine is an exchange that sends back what the dispatch before
// it brought. Costs are of a replay of the exchanges of the group, in which each ends when its last rank has come.
// Returns whether ranks receive different numbers of rows at all; nullopt: no exchange says its rows.
std::optional<bool> add_expert_exchanges(const LedgerOfRun& run, Table& ranks, Table& causes);

}  // namespace stageline
