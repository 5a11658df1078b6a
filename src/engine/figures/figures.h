// All figures of a run, and those that are asked for by name.
#pragma once

#include "facts/run.h"

namespace stageline {

// Figure: a number that several places show. Each has one name, one unit, one base and one owner that computes it. So
// explain, info, SQL, Python, the page and history cannot disagree. figures.def lists them.
struct Figure {
  std::string name;                                         // "step_period"; of a family: "part.compute"
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN: unknown, and why_unknown gives the reason
  double error = std::numeric_limits<double>::quiet_NaN();  // standard error; NaN: not known
  Text why_unknown;
  bool known() const { return !std::isnan(value); }
};

// The most expensive thing that must be computed.
enum class FigureCost : uint8_t {
  kRead,     // nothing beyond reading the run
  kSums,     // one pass over all slices
  kExplain,  // everything that `stageline explain` computes
  kAlone,    // a pass that no other answer needs: the page leaves it out
};

using SharedRun = std::shared_ptr<const Run>;

struct FigureSpec {
  // Lower-case, with underscores. A name that ends in "." is a family: its members are "part.compute", "part.bubble".
  std::string_view name;
  std::string_view unit;  // "ns", "share", "ratio", or "" for a count
  FigureCost cost = FigureCost::kRead;
  std::vector<Figure> (*of)(const SharedRun& run) = nullptr;  // one figure, or the members of the family
  bool is_family() const { return name.ends_with('.'); }
  // The name without the point of a family: "part".
  std::string_view stem() const { return is_family() ? name.substr(0, name.size() - 1) : name; }
};

// The figure's definition in one or two sentences, and what it is of ("mean over the usual steps").
Text definition_of(const FigureSpec& spec);
Text base_of(const FigureSpec& spec);

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
