#include "compat/msprof/missing_backwards.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/number.h"
#include "compat/msprof/problems.h"

namespace stageline {
namespace {

using Work = std::pair<int32_t, int32_t>;  // (chunk, micro-batch)

struct StepWork {
  std::multiset<Work> forwards, backwards;
  bool numbered = true;  // all of them give their micro-batch

  int64_t without_backward() const {
    if (!numbered) return std::max<int64_t>(0, std::ssize(forwards) - std::ssize(backwards));
    return std::ranges::count_if(forwards, [&](const Work& w) { return !backwards.contains(w); });
  }
};

}  // namespace

void say_missing_backwards(const Trace& trace, Diagnostics& notes) {
  std::map<int32_t, std::map<int32_t, StepWork>> parts;  // part → step → its work
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    const Cell cell = trace.cells.at(i);
    const bool both = cell.kind == CellKind::kForwardBackward;
    if (cell.kind != CellKind::kForward && !is_backward(cell.kind) && !both) continue;
    StepWork& step = parts[cell.part][cell.step];
    step.numbered &= cell.micro_batch != kUnknown;
    if (cell.kind == CellKind::kForward || both) step.forwards.emplace(cell.chunk, cell.micro_batch);
    if (is_backward(cell.kind) || both) step.backwards.emplace(cell.chunk, cell.micro_batch);
  }
  int64_t all = 0, missing = 0;
  int32_t first_part = -1, first_step = -1;
  for (const auto& [part, steps] : parts)
    for (const auto& [step, work] : steps) {
      if (steps.size() > 1 && step == steps.rbegin()->first) continue;
      all += std::ssize(work.forwards);
      const int64_t here = work.without_backward();
      if (missing == 0 && here > 0) {
        first_part = part;
        first_step = step;
      }
      missing += here;
    }
  if (missing == 0) return;
  notes.add(problem::pp_chart_no_backwards, Args()
                                                .set("missing", grouped(missing))
                                                .set("all", grouped(all))
                                                .set("rank", int64_t{trace.parts[first_part].rank})
                                                .set("step", first_step == kUnknown ? "" : std::to_string(first_step)));
}

}  // namespace stageline
