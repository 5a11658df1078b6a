#include "diagnosis/causes/late_sends/late_sends.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_late_sends(std::span<const Cause* const> causes, const TellContext& context) {
  constexpr size_t kShown = 3;
  const Cause& c = *causes.front();
  const auto& own = c.own.as<LateSendsOwn>();
  std::vector<std::string> cells;
  for (const uint32_t at : own.at) {
    const Cell cell = context.trace.cells.at(at);
    cells.push_back(cell_label(cell, cell.chunk > 0));
  }
  Args args = context.args(c);
  args.set("cells", some_of(cells, kShown)).set("usual", human_duration(own.usual_ns));
  Telling telling = say_cause("sends.late", "sends.late", args);
  telling.table = {"links", ""};
  return telling;
}

}  // namespace stageline
