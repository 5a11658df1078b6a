// Finds what slow links have in common: a rank, or a boundary of two stages.
#pragma once

#include "model/finding.h"
#include "pipeline/measure/links.h"

namespace stageline {

// One for every slow endpoint ("link.endpoint") and every slow boundary of stages ("link.boundary"), the costliest
// first. They are rows of slow-links, not findings of explain: they cost what their links cost.
std::vector<Finding> common_ends(const Trace& trace, const Links& links);

}  // namespace stageline
