// The lines of the account of a step that no cause is named for. Part of causes.
#pragma once

#include "diagnosis/causes/cause.h"
#include "diagnosis/causes/cause_worlds.h"

namespace stageline {

// Splits the step time that remains after all named causes are removed. Like the waterfall, it replays the steps with
// more and more of the real times and attributes each difference. The parts are: mean per kind of cell, mean per place,
// each cell (separately for cells that slow a whole replica), messages, late starts.
void account_for_rest(const CauseScene& scene, CauseWorlds& worlds, const CauseWorlds::World& all,
                      const std::vector<bool>& counts, std::vector<AccountLine>& left);

}  // namespace stageline
