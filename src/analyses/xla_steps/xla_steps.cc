// How the steps of an XLA profile were spent, as in XProf's step graph. Definitions: docs/analyses/xla-steps.md.

#include "analyses/analysis.h"
#include "analyses/xla_steps/problems.h"

namespace stageline {
namespace {

std::vector<ColumnSpec> xla_steps_columns() {
  const auto ms = [](const char* name, const char* title, const char* help) {
    return ColumnSpec{name, title, Type::kReal, help};
  };
  return {
      {"host", "host", Type::kText, "Host whose step it is"},
      {"step", "step", Type::kInteger, "Number that the program gave the step (step_num)"},
      {"name", "name", Type::kText, "Name that the program gave the step, and the number"},
      ms("step_ms", "step", "From the step's start to its end, ms: of the devices where they worked, else of the host"),
      ms("device_compute_ms", "device compute", "Kernels that neither copy nor communicate, ms"),
      ms("device_to_device_ms", "between devices", "Copies between devices, ms"),
      ms("collectives_ms", "collectives", "NCCL's kernels, ms"),
      ms("host_compute_ms", "host", "The host works, and no device is known to, ms"),
      ms("host_prepare_ms", "launches", "The host launches work, and no device works, ms"),
      ms("input_ms", "input", "Copies to devices, and waits for the input pipeline, ms"),
      ms("output_ms", "output", "Copies from devices, ms"),
      ms("compile_ms", "compilation", "XLA compiles, ms"),
      ms("other_ms", "other", "What is left of the step, ms")};
}

Result<AnalysisResult> run_xla_steps(const AnalysisInput& input) {
  const Trace& trace = input.run().trace();
  Table table("xla-steps", "What each step was spent on", xla_steps_columns());
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
  result.tables.push_back(std::move(table));
  return result;
}

}  // namespace

extern const Analysis xla_steps_analysis = {
    .name = "xla-steps",
    .summary = "what the steps of a profile of XLA were spent on, as XProf has it",
    .tables = {{"xla-steps", "one row per step and host", xla_steps_columns}},
    .run = run_xla_steps,
    .needs = AnalysisNeeds::kXla};

}  // namespace stageline
