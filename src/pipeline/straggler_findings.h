// Stragglers in words, in both languages.
#pragma once

#include <string>
#include <vector>

#include "model/finding.h"
#include "pipeline/stragglers.h"

namespace stageline {

// One finding a cause, in their order; weight is the saving's share of the mean step. Ids: "straggler.worker",
// "straggler.stage", "straggler.sequences", "straggler.pauses", "straggler.launch", "straggler.step".
std::vector<Finding> straggler_findings(const Trace& trace, const Stragglers& stragglers);

// What a worker is, for its row: "1.50× its peers, slow in 8 of 8 steps".
std::string straggler_words(const StragglerWorker& worker);

}  // namespace stageline
