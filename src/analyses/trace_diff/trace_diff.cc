#include "analyses/trace_diff/trace_diff.h"

#include "compat/hta/hta_diff.h"

namespace stageline {
namespace {

Result<AnalysisResult> run_trace_diff(const AnalysisInput& input) {
  DiffOptions options;
  for (const auto& [name, list] :
       {std::pair{"control-rank", &options.control_ranks}, std::pair{"test-rank", &options.test_ranks},
        std::pair{"control-iteration", &options.control_steps}, std::pair{"test-iteration", &options.test_steps}}) {
    TRY(numbers, input.options.numbers(name));
    *list = std::move(*numbers);
  }
  if (Status taken = take(input.options.flag("use-short-name", false), options.short_names); !taken)
    return std::move(taken).error();
  options.include_last_step = input.include_last_step;
  const std::string side = input.options.text("device-type", "ALL");
  options.side = side == "CPU" ? DeviceSide::kHost : side == "GPU" ? DeviceSide::kDevice : DeviceSide::kAll;
  if (!input.hta) return exact_trace_diff(input, options);
  TRY(tables, hta_trace_diff(*input.control, *input.test, options));
  AnalysisResult result;
  result.tables = std::move(*tables);
  return result;
}

}  // namespace

extern const Analysis trace_diff_analysis = {
    .name = "trace-diff",
    .summary = "two runs compared, operator by operator",
    .tables = {{"compare-traces", "one row per operator, largest change first", compare_traces_columns},
               {"ops-diff", "operators that came, went, or changed in number", ops_diff_columns}},
    .run = run_trace_diff,
    .needs = AnalysisNeeds::kTwoRuns,
    .options = {{"control", "PATH", "The run to compare with", ""},
                {"test", "PATH", "The run that is new", ""},
                {"control-rank", "LIST", "Ranks of the control run; default those that both runs have", ""},
                {"test-rank", "LIST", "Ranks of the test run; default those that both runs have", ""},
                {"control-iteration", "LIST", "Profiler steps of the control run; default all, by position", ""},
                {"test-iteration", "LIST", "Profiler steps of the test run; default all, by position", ""},
                {"device-type", "SIDE", "Host operators (CPU), device work (GPU) or both; default ALL", "ALL,CPU,GPU"},
                {"use-short-name", "BOOL", "Names without template arguments and parameters; default false", ""}},
    .compat = "hta"};

}  // namespace stageline
