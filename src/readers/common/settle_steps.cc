#include "readers/common/settle_steps.h"

#include <algorithm>

#include "model/lossy_steps.h"
#include "model/problems.h"
#include "readers/common/number_steps.h"

namespace stageline {

void settle_steps(std::vector<Op>& ops, std::string_view format, std::string_view unit, Trace& trace) {
  if (std::ranges::none_of(ops, [](const Op& op) { return op.step != kUnknown; }))
    number_steps(ops, format, unit, trace.diagnostics);
  number_compute(ops, format, trace.diagnostics);
  number_messages(ops, format, trace.diagnostics);
  if (steps_restart(ops) && lay_steps_end_to_end(ops)) {
    trace.steps_laid_end_to_end = true;
    trace.diagnostics.add(problem::reader_steps_laid_end_to_end.of(format));
  }
  settle_lossy_steps(trace);
}

}  // namespace stageline
