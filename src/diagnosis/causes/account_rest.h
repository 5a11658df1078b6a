// The lines of the account of a step that no cause is named for. Part of causes.
#pragma once

#include <vector>

#include "diagnosis/causes/cause.h"
#include "diagnosis/causes/cause_worlds.h"

namespace stageline {

// What is left of the steps once all that is named is gone, told apart by replays with more and more of the real times,
// as the waterfall's: each kind of cell at its mean, each place at its own, each cell (what makes a whole replica slow
// in some steps for itself), messages, late starts.
void account_for_rest(const CauseScene& scene, CauseWorlds& worlds, const CauseWorlds::World& all,
                      const std::vector<bool>& counts, std::vector<AccountLine>& left);

}  // namespace stageline
