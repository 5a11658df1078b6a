#include "diagnosis/causes/gap_times.h"

namespace stageline {
namespace {

struct Held {
  double ns = 0;
  std::map<int32_t, double> by_part;  // kUnknown: on several
  std::vector<int32_t> steps;
  std::map<int32_t, double> by_step;
  void add(double more_ns, int32_t part, int32_t step) {
    if (!(more_ns > 0)) return;
    by_part[part] += more_ns;
    ns += more_ns;
    by_step[step] += more_ns;
    steps.push_back(step);
  }
};

}  // namespace

std::vector<GapTime> gap_times(const StepPeriods& periods) {
  std::map<std::string, Held> usual, extra;
  for (size_t i = 0; i < periods.gaps.size(); ++i) {
    const StepGap& gap = periods.gaps[i];
    double left = gap.ns, beyond = periods.beyond_ns(i);
    for (const GapPhase& phase : gap.phases) {
      const double more = std::min(beyond, phase.ns);  // the longest phases count first as what makes a gap long
      extra[phase.name].add(more, phase.part, gap.step);
      usual[phase.name].add(phase.ns - more, phase.part, gap.step);
      beyond -= more, left -= phase.ns;
    }
    const double more = std::min(beyond, std::max(0.0, left));
    extra[""].add(more, kUnknown, gap.step);
    usual[""].add(left - more, kUnknown, gap.step);
  }
  std::vector<GapTime> times;
  for (auto* held : {&usual, &extra})
    for (auto& [name, sum] : *held) {
      if (!(sum.ns > 0)) continue;
      for (const StepGap& gap : periods.gaps) sum.by_step.try_emplace(gap.step, 0.0);
      times.push_back({.name = name,
                       .sometimes = held == &extra,
                       .part = longest_part(sum.by_part),
                       .steps = sum.steps,
                       .by_step = std::move(sum.by_step),
                       .each_ns = sum.ns / sum.steps.size(),
                       .mean_ns = sum.ns / periods.gaps.size()});
    }
  return times;
}

}  // namespace stageline
