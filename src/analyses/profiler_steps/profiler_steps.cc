// The profiler steps that are left after loading. Definitions: docs/analyses/profiler-steps.md.
#include "analyses/analysis.h"
#include "profile/device_time.h"

namespace stageline {
namespace {

// HTA lists the ProfilerStep rows that are left, whether they are on the host or on the device (fault F12).
Table hta_profiler_steps_table(const TorchRun& run) {
  std::vector<std::set<int64_t>> found(run.parts.size());
  parallel_for(found.size(), [&](size_t k) {
    for (const auto rank = torch_rank(run, run.parts[k]); const TorchRow& row : rank->rows)
      if (const int64_t number = run.step_number[row.name]; number >= 0) found[k].insert(number);
  });
  std::set<int64_t> steps;
  for (const auto& of_rank : found) steps.insert(of_rank.begin(), of_rank.end());
  Table table(declared_table("profiler-steps/profiler-steps/hta"));
  for (const int64_t step : steps) table.add_row({step});
  return table;
}

Table exact_profiler_steps_table(const TorchRun& run) {
  Table table(declared_table("profiler-steps/profiler-steps"));
  std::vector<std::vector<DeviceStep>> ranks(run.parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = device_steps(run, run.parts[k]); });
  for (const std::vector<DeviceStep>& rank : ranks)
    for (const DeviceStep& step : rank) {
      const auto known = [&](int64_t ns) { return step.any ? ns : kNullInteger; };
      table.add_row({int64_t{step.rank}, step.number, step.host_start_ns, step.host_ns, known(step.start_ns),
                     known(step.end_ns), known(step.length_ns)});
    }
  return table;
}

}  // namespace

Result<AnalysisResult> run_profiler_steps(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  AnalysisResult result = answer_of(*torch);
  return result.with(input.hta ? hta_profiler_steps_table(*torch) : exact_profiler_steps_table(*torch));
}

}  // namespace stageline
