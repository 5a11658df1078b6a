// The profiler steps that are left after loading. Definitions: docs/analyses/profiler-steps.md.
#include <set>

#include "analyses/analysis.h"
#include "base/parallel.h"
#include "model/torch_view.h"

namespace stageline {
namespace {

using Type = ColumnType;

// HTA lists what ProfilerStep rows are left, whichever side of the machine they are of (fault F12).
Table hta_table(const std::vector<std::set<int64_t>>& found) {
  std::set<int64_t> steps;
  for (const auto& of_rank : found) steps.insert(of_rank.begin(), of_rank.end());
  Table table("profiler-steps", "Profiler steps (HTA)", {{"profiler_step", "step", Type::kInteger, ""}});
  for (const int64_t step : steps) table.add_row({step});
  return table;
}

Table exact_table(const TorchRun& run) {
  Table table("profiler-steps", "Profiler steps",
              {{"rank", "rank", Type::kInteger, "Global rank"},
               {"step", "step", Type::kInteger, "Number of the host's ProfilerStep row"},
               {"start_ns", "start", Type::kTime, "From the earliest start of all ranks"},
               {"dur_ns", "duration", Type::kDuration, "Of the row: the host's time, not the device's"}});
  for (const size_t p : run.parts) {
    const Part& part = run.trace->parts[p];
    const bool drops = run.drops_last_step && part.steps.size() >= 2;
    for (const ProfilerStep& step : part.steps) {
      if (drops && step.start_ns >= part.steps.back().start_ns) continue;
      const SliceFilter& filter = run.trace->slice_filter;
      if (step.number < filter.first_step || step.number > filter.last_step) continue;
      table.add_row({int64_t{part.rank}, step.number, step.start_ns - run.zero_ns, step.end_ns - step.start_ns});
    }
  }
  return table;
}

Result<AnalysisResult> run(const AnalysisInput& input) {
  Result<TorchRun> torch = make_torch_run(*input.trace, {input.hta, input.include_last_step});
  if (!torch) return std::move(torch).error();
  AnalysisResult result;
  if (!input.hta) {
    result.tables.push_back(exact_table(*torch));
    return result;
  }
  std::vector<std::set<int64_t>> found(torch->parts.size());
  parallel_for(found.size(), [&](size_t k) {
    for (const TorchRow& row : torch_rank(*torch, torch->parts[k]).rows)
      if (const int64_t number = torch->step_number[row.name]; number >= 0) found[k].insert(number);
  });
  result.tables.push_back(hta_table(found));
  return result;
}

}  // namespace

extern const Analysis profiler_steps_analysis;
const Analysis profiler_steps_analysis = {.name = "profiler-steps",
                                          .summary = "the profiler steps that are left after loading",
                                          .tables = {{"profiler-steps", "one row per rank and step"}},
                                          .run = run,
                                          .needs = AnalysisNeeds::kTorch,
                                          .has_hta_mode = true};

}  // namespace stageline
