#include "pipeline/replay/replay_miss.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "model/intervals.h"
#include "pipeline/replay/step_replay.h"

namespace stageline {
namespace {

// Returns the recorded span of a step's work, by timestamps or by common times, whichever is shorter: a graph may use
// either.
double recorded_span(const Trace& trace, const StepRange& range) {
  const Cells& cells = trace.cells;
  Span stamped, common;
  for (size_t i = range.begin; i < range.end; ++i) {
    if (!is_compute(cells.kind[i]) && cells.kind[i] != CellKind::kOptimizer) continue;
    stamped.add(cells.start_ns[i], cells.end_ns[i]);
    if (trace.alignment == AlignState::kMapped)
      common.add(trace.common_ns(cells.part[i], cells.start_ns[i]), trace.common_ns(cells.part[i], cells.end_ns[i]));
  }
  return trace.alignment == AlignState::kMapped ? std::min(stamped.length_ns(), common.length_ns())
                                                : stamped.length_ns();
}

}  // namespace

std::vector<double> replay_misses(const Trace& trace, const StepGraph& g) {
  std::vector<StepRange> ranges = step_ranges(trace.cells);
  std::erase_if(ranges, [](const StepRange& range) { return range.step == kUnknown; });
  std::vector<double> recorded(ranges.size());
  parallel_for(ranges.size(), [&](size_t r) { recorded[r] = recorded_span(trace, ranges[r]); });
  const std::vector<double> replayed = replay_world(g, [&](const WorldStretch& s) {
    std::copy(g.dur_ns.begin() + s.begin, g.dur_ns.begin() + s.end, s.dur_ns);
    std::copy(g.delay_ns.begin() + s.begin, g.delay_ns.begin() + s.end, s.delay_ns);
  });
  std::vector<double> missed(g.steps.size());
  size_t r = 0;  // both are in order of steps
  for (size_t s = 0; s < g.steps.size(); ++s) {
    const double span_ns = g.steps[s].span_ns;
    missed[s] = std::abs(replayed[s] - span_ns);
    while (r < ranges.size() && ranges[r].step < g.steps[s].step) ++r;
    if (r < ranges.size() && ranges[r].step == g.steps[s].step) missed[s] = std::max(missed[s], recorded[r] - span_ns);
  }
  return missed;
}

}  // namespace stageline
