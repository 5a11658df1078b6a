// The profiler steps that are left after loading. Definitions: docs/analyses/profiler-steps.md.
#include <algorithm>
#include <set>

#include "analyses/analysis.h"
#include "base/parallel.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

using Type = ColumnType;

// HTA lists the ProfilerStep rows that are left, whether they are on the host or on the device (fault F12).
Table hta_profiler_steps_table(const std::vector<std::set<int64_t>>& found) {
  std::set<int64_t> steps;
  for (const auto& of_rank : found) steps.insert(of_rank.begin(), of_rank.end());
  Table table("profiler-steps", "Profiler steps (HTA)", {{"profiler_step", "step", Type::kInteger, ""}});
  for (const int64_t step : steps) table.add_row({step});
  return table;
}

struct DeviceStep {
  int64_t start_ns = INT64_MAX, end_ns = INT64_MIN;
  bool any() const { return end_ns != INT64_MIN; }
};

// Returns what the devices did in each step of the part. Work belongs to the step that launched it.
std::vector<DeviceStep> device_steps(const Trace& trace, const Part& part) {
  std::vector<DeviceStep> steps(part.steps.size());
  const Slices& s = part.slices;
  if (s.step.empty()) return steps;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s.step[i] == 0 || !is_device_work(trace.categories[s.category_id[i]].kind)) continue;
    DeviceStep& step = steps[s.step[i] - 1u];
    step.start_ns = std::min(step.start_ns, s.start_ns[i]);
    step.end_ns = std::max(step.end_ns, s.end_ns(i));
  }
  return steps;
}

// The host may run ahead and block later, so its rows say little about the length of a step. Devices work in order, so
// they spent on this step the time from the last end of the step before to the last end of this one.
int64_t device_length(const Part& part, const std::vector<DeviceStep>& device, size_t k) {
  if (!device[k].any()) return kNullInteger;
  const bool follows = k > 0 && device[k - 1].any() && part.steps[k].number == part.steps[k - 1].number + 1 &&
                       !part.recorded_anew(device[k - 1].end_ns, device[k].start_ns);
  return std::max<int64_t>(0, device[k].end_ns - (follows ? device[k - 1].end_ns : device[k].start_ns));
}

std::vector<ColumnSpec> profiler_steps_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"step", "step", Type::kInteger, "Number of the host's ProfilerStep row"},
          {"start_ns", "start", Type::kTime, "Start of the host's row, from the earliest start of all ranks"},
          {"dur_ns", "host length", Type::kDuration,
           "Length of the host's row; it may differ from the device's, because the host may run ahead and block later"},
          {"device_start_ns", "device start", Type::kTime, "First start of the device work that the step launched"},
          {"device_end_ns", "device end", Type::kTime, "Last end of the device work that the step launched"},
          {"device_ns", "device length", Type::kDuration,
           "From the last device end of the step before to its own last device end; for the first step from its own "
           "first start"}};
}

Table exact_profiler_steps_table(const TorchRun& run) {
  Table table("profiler-steps", "Profiler steps", profiler_steps_columns());
  std::vector<std::vector<DeviceStep>> ranks(run.parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = device_steps(*run.trace, run.trace->parts[run.parts[k]]); });
  for (size_t r = 0; r < ranks.size(); ++r) {
    const Part& part = run.trace->parts[run.parts[r]];
    const std::vector<DeviceStep>& device = ranks[r];
    const bool drops = run.drops_last_step && part.steps.size() >= 2;
    for (size_t k = 0; k < part.steps.size(); ++k) {
      const ProfilerStep& step = part.steps[k];
      if (drops && step.start_ns >= part.steps.back().start_ns) continue;
      const SliceFilter& filter = run.trace->slice_filter;
      if (step.number < filter.first_step || step.number > filter.last_step) continue;
      const auto at = [&](int64_t ns) { return device[k].any() ? ns - run.zero_ns : kNullInteger; };
      table.add_row({int64_t{part.rank}, step.number, step.start_ns - run.zero_ns, step.end_ns - step.start_ns,
                     at(device[k].start_ns), at(device[k].end_ns), device_length(part, device, k)});
    }
  }
  return table;
}

Result<AnalysisResult> run_profiler_steps(const AnalysisInput& input) {
  Result<TorchRun> torch = make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows});
  if (!torch) return std::move(torch).error();
  AnalysisResult result;
  note_last_step(*torch, result.notes);
  if (!input.hta) {
    result.tables.push_back(exact_profiler_steps_table(*torch));
    return result;
  }
  std::vector<std::set<int64_t>> found(torch->parts.size());
  parallel_for(found.size(), [&](size_t k) {
    for (const auto rank = torch_rank(*torch, torch->parts[k]); const TorchRow& row : rank->rows)
      if (const int64_t number = torch->step_number[row.name]; number >= 0) found[k].insert(number);
  });
  result.tables.push_back(hta_profiler_steps_table(found));
  return result;
}

}  // namespace

extern const Analysis profiler_steps_analysis;
const Analysis profiler_steps_analysis = {
    .name = "profiler-steps",
    .summary = "the profiler steps that are left after loading",
    .tables = {{"profiler-steps", "one row per rank and step", profiler_steps_columns}},
    .run = run_profiler_steps,
    .needs = AnalysisNeeds::kTorch,
    .compat = "hta"};

}  // namespace stageline
