// Figures of findings: what they cost and what their fixes save; and counts of problems in the input.
#include "engine/engine.h"
#include "engine/figures/figures.h"
#include "engine/model_tables.h"
#include "pipeline/clocks/problems.h"

namespace stageline::figures {
namespace {

std::vector<Figure> flaws(const SharedRun& run, const char* name, bool of_clocks) {
  const std::vector<Diagnostic>& items = run->trace().diagnostics.items();
  const auto count = std::ranges::count_if(items, [&](const Diagnostic& d) {
    // Notes of a drawing about clocks do not describe the run.
    return is_of_clocks(d) == of_clocks && d.name != problem::clock_drawn_as_recorded.name;
  });
  return {{.name = name, .value = static_cast<double>(count)}};
}

}  // namespace

std::vector<Figure> lost(const SharedRun& run) {
  const Explanation& e = explained_run(*run);
  if (!(e.step_ns > 0)) return {{.name = "lost", .why_unknown = words("figure.no_steps")}};
  return {{.name = "lost", .value = e.lost_ns, .error = e.lost_error_ns}};
}

// finding.1.lost and finding.1.saving of the first finding that explain lists, and so on.
std::vector<Figure> finding(const SharedRun& run) {
  std::vector<Figure> out;
  size_t number = 0;
  for (const Finding& f : explained_run(*run).findings) {
    const std::string name = "finding." + std::to_string(++number) + ".";
    Figure cost{.name = name + "lost"}, saving{.name = name + "saving"};
    if (f.is_time) cost.value = f.lost_ns_per_step, cost.error = f.uncertainty_ns;
    else cost.why_unknown = words("figure.no_time");
    if (f.price.saving_ns > 0) saving.value = f.price.saving_ns;
    else saving.why_unknown = words("figure.not_priced");
    out.push_back(std::move(cost));
    out.push_back(std::move(saving));
  }
  return out;
}

std::vector<Figure> flaws_input(const SharedRun& run) { return flaws(run, "flaws_input", false); }
std::vector<Figure> flaws_clock(const SharedRun& run) { return flaws(run, "flaws_clock", true); }

}  // namespace stageline::figures
