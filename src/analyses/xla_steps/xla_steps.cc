// Divides the steps of an XLA profile as XProf's step graph does. Definitions: docs/analyses/xla-steps.md.
#include "analyses/analysis.h"
#include "analyses/xla_steps/problems.h"

namespace stageline {

Result<AnalysisResult> run_xla_steps(const AnalysisInput& input) {
  const Trace& trace = input.run().trace();
  Table table(declared_table("xla-steps/xla-steps"));
  bool any = false;
  for (const Part& part : trace.parts)
    for (const XlaStep& step : part.xla_steps) {
      any = true;
      const auto in_ms = [](int64_t ps) { return ps / 1e9; };
      table.add_row({part.machine_name, step.number, step.name, in_ms(step.step_ps), in_ms(step.device_compute_ps),
                     in_ms(step.device_to_device_ps), in_ms(step.collectives_ps), in_ms(step.host_compute_ps),
                     in_ms(step.host_prepare_ps), in_ms(step.input_ps), in_ms(step.output_ps), in_ms(step.compile_ps),
                     in_ms(step.other_ps)});
    }
  AnalysisResult result;
  if (!any) result.notes.add(problem::xla_steps_none);
  return result.with(std::move(table));
}

}  // namespace stageline
