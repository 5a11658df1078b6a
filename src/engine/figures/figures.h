// All figures of a run, and those that are asked for by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/figures/figure.h"

namespace stageline {

// Returns the figure that has this name, or the family that such a member would belong to; nullptr: there is none.
const FigureSpec* find_figure(std::string_view name);

// Errors: kUsage with the nearest name where find_figure() has none.
Status check_figure(std::string_view name);

// A figure of a run and the line of figures.def that it comes from.
struct NamedFigure {
  const FigureSpec* spec;
  Figure figure;
};

// Computes only what is asked for: "step_period", "part.compute", or "part" for all members of a family. No names: all
// figures. A member that this run does not have is unknown. Errors: kUsage for a name that no figure has.
Result<std::vector<NamedFigure>> figures_of(const SharedRun& run, const std::vector<std::string>& names);

// A JSON list of objects with the keys of these columns; texts in both languages.
std::string figures_json(const std::vector<NamedFigure>& figures);
// {"figures": such a list} for the page's glossary: all that explain has computed already.
std::string page_figures_json(const SharedRun& run);

}  // namespace stageline
