// The answer of `stageline explain` as text for people.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"
#include "diagnosis/explain.h"

namespace stageline {

// Returns the run in one line, the parts of a step as bars, and the findings, each with the gain of its fix and the
// command to type.
std::string explain_text(const Terminal& terminal, const Explanation& explanation,
                         const std::vector<std::string>& paths);

}  // namespace stageline
