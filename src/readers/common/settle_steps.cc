#include "readers/common/settle_steps.h"

#include <algorithm>
#include <string>

#include "model/lossy_steps.h"
#include "readers/common/number_steps.h"

namespace stageline {

void settle_steps(std::vector<Op>& ops, std::string_view format, std::string_view unit, Trace& trace) {
  const auto note = [&](std::string_view name, const std::string& message) {
    trace.diagnostics.add(std::string(format) + "." + std::string(name), Severity::kInfo, message);
  };
  if (std::none_of(ops.begin(), ops.end(), [](const Op& op) { return op.step != kUnknown; }))
    number_steps(ops, format, unit, trace.diagnostics);
  number_compute(ops, format, trace.diagnostics);
  number_messages(ops, format, trace.diagnostics);
  if (steps_restart(ops) && lay_steps_end_to_end(ops)) {
    trace.steps_laid_end_to_end = true;
    note("steps_laid_end_to_end", "the source restarts its clock at every step; steps were laid one after another");
  }
  settle_lossy_steps(trace);
}

}  // namespace stageline
