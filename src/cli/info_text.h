// The answers of `stageline info` and `stageline explain` as text for people.
#pragma once

#include "cli/terminal.h"
#include "diagnosis/explain.h"
#include "engine/figures/figures.h"

namespace stageline {

// Returns one line for each thing that was found, and what was wrong with it.
std::string info_text(const Trace& trace);

// Returns one line for each figure: its name, its value for people, and what it is of or why it is unknown.
std::string figures_text(const Terminal& terminal, const std::vector<NamedFigure>& figures);

// Returns the run in one line, the parts of a step as bars, and the findings, each with the gain of its fix and the
// command to type.
std::string explain_text(const Terminal& terminal, const Explanation& explanation,
                         const std::vector<std::string>& paths);

}  // namespace stageline
