// Figure: a number that several places show. Each has one name, one unit, one base and one owner that computes it. So
// explain, info, SQL, Python, the page and history cannot disagree. figures.def lists them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.h"
#include "facts/run.h"

namespace stageline {

struct Figure {
  std::string name;                                         // "step_period"; of a family: "part.compute"
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN: unknown, and why_unknown gives the reason
  double error = std::numeric_limits<double>::quiet_NaN();  // standard error; NaN: not known
  Text why_unknown = {};                                    // NOLINT(readability-redundant-member-init): GCC wants it
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

}  // namespace stageline
