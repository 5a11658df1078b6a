// The answer of `stageline explain` for people.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"
#include "diagnosis/explain.h"

namespace stageline {

// The run in one line, where a step goes as bars, findings with what each fix is worth and what to type.
std::string explain_text(const Terminal& terminal, const Explanation& explanation,
                         const std::vector<std::string>& paths);

}  // namespace stageline
