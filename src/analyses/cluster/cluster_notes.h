// Notes on the input that several analyses of communication share.
#pragma once

#include "analyses/analysis.h"
#include "profile/communication_ops.h"

namespace stageline {

// Adds notes on what could not be matched.
void note_unmatched(const Matched& matched, size_t rank_count, Diagnostics& notes);

// For Ascend: adds a note where a profile of Level_none cannot hold what is asked for. Reports do not need it, because
// they note it once for all analyses.
void note_level_none(const AnalysisInput& input, Diagnostics& notes);

}  // namespace stageline
