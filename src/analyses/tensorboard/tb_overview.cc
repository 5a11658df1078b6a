// Where the time of the steps went, by the categories of TensorBoard's profiler plugin, how full the devices were, and
// what to try. Definitions: docs/analyses/tb-overview.md.
#include <algorithm>
#include <cmath>

#include "analyses/analysis.h"
#include "analyses/tensorboard/problems.h"
#include "base/parallel.h"
#include "model/statistics.h"
#include "profile/tb_advice.h"

namespace stageline {
namespace {

std::vector<ColumnSpec> step_averages_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"category", "category", Type::kText,
           "By priority: an instant belongs to the first category that covers it; they add up to the step"},
          {"time_ns", "time", Type::kDuration, "Mean over the steps, to the nanosecond"},
          {"time_share", "share", Type::kShare, "Share of the mean step"}};
}

Table averages_table(const std::vector<TbOverview>& ranks) {
  Table table("step-averages", "The average step of every rank", step_averages_columns());
  for (const TbOverview& r : ranks) {
    if (r.steps.empty()) continue;
    const double total = r.average_ns(r.total_ns);
    for (size_t role = 0; role < kTbRoleCount; ++role) {
      const double ns = r.average_ns(r.sums[role]);
      table.add_row({int64_t{r.rank}, std::string(tb_role_name(static_cast<TbRole>(role))), std::llround(ns),
                     share_of(ns, total)});
    }
    table.add_row({int64_t{r.rank}, std::string("Step"), std::llround(total), total > 0 ? 1.0 : NAN});
  }
  return table;
}

std::vector<ColumnSpec> step_breakdown_columns() {
  return {
      {"rank", "rank", Type::kInteger, "Global rank"},
      {"step", "step", Type::kInteger, "ProfilerStep number; unknown: none was recorded, all is one step"},
      {"total_ns", "step", Type::kDuration, "Length of the step, up to the end of the device work that it launched"},
      {"kernel_ns", "Kernel", Type::kDuration, "Computation kernels, union over streams"},
      {"memcpy_ns", "Memcpy", Type::kDuration, "Copies while no kernel runs"},
      {"memset_ns", "Memset", Type::kDuration, "Memsets, with nothing named before over them"},
      {"communication_ns", "Communication", Type::kDuration, "Communication with nothing named before over it"},
      {"runtime_ns", "Runtime", Type::kDuration, "Runtime and driver calls while the device does nothing"},
      {"data_loader_ns", "DataLoader", Type::kDuration, "Waiting for input, nothing named before over it"},
      {"cpu_exec_ns", "CPU Exec", Type::kDuration, "Operators and annotations, nothing named before over them"},
      {"other_ns", "Other", Type::kDuration, "Time in none of these categories"}};
}

Table steps_table(const std::vector<TbOverview>& ranks) {
  Table table("step-breakdown", "Steps by category", step_breakdown_columns());
  for (const TbOverview& r : ranks)
    for (size_t i = 0; i < r.steps.size(); ++i) {
      std::vector<Table::Value> row = {int64_t{r.rank}, r.steps[i].number, r.steps[i].length_ns()};
      for (const int64_t ns : r.costs[i]) row.emplace_back(ns);
      table.add_row(std::move(row));
    }
  return table;
}

std::vector<ColumnSpec> device_utilization_columns() {
  return {
      {"rank", "rank", Type::kInteger, "Global rank"},
      {"device", "device", Type::kInteger, "Number within the machine"},
      {"name", "name", Type::kText, ""},
      {"kernel_count", "kernels", Type::kInteger, ""},
      {"utilization_share", "utilisation", Type::kShare, "Share of the time of all steps in which some kernel runs"},
      {"sm_efficiency_share", "SM efficiency", Type::kShare,
       "Estimate: min(1, blocks per SM of what runs), over the time of all steps"},
      {"occupancy_share", "occupancy", Type::kShare, "Est. achieved occupancy, mean by kernel time"},
      {"tensor_core_share", "tensor cores", Type::kShare,
       "Kernel time of kernels whose name says that they use tensor or matrix cores"}};
}

Table devices_table(const std::vector<TbOverview>& ranks) {
  Table table("device-utilization", "How busy and how full the devices were", device_utilization_columns());
  for (const TbOverview& r : ranks)
    for (const TbDevice& d : r.devices)
      table.add_row({int64_t{r.rank}, d.number, d.name, d.kernel_count, d.utilization, d.sm_efficiency, d.occupancy,
                     d.tensor_cores});
  return table;
}

std::vector<ColumnSpec> recommendations_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"recommendation", "about", Type::kText, "docs/analyses/tb-overview.md"},
          {"value_share", "share", Type::kShare, "The number on which the recommendation is based"},
          {"text", "what to try", Type::kText, ""}};
}

Table advice_table(const std::vector<TbOverview>& ranks) {
  Table table("recommendations", "What to try", recommendations_columns());
  for (const TbOverview& r : ranks)
    for (const TbAdvice& advice : tb_advice(r))
      table.add_row({int64_t{r.rank}, std::string(advice.id), advice.share, advice.text});
  return table;
}

Result<AnalysisResult> run_tb_overview(const AnalysisInput& input) {
  TRY(made, make_tb_run(*input.trace, input.include_last_step));
  const TbRun& tb = *made;
  const FunctionNames names(*input.trace);
  std::vector<TbOverview> ranks(tb.torch.parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = tb_overview(tb, names, tb_rank(tb, tb.torch.parts[k])); });
  AnalysisResult result;
  result.tables.push_back(averages_table(ranks));
  result.tables.push_back(steps_table(ranks));
  result.tables.push_back(devices_table(ranks));
  result.tables.push_back(advice_table(ranks));
  int64_t dropped = 0;
  for (const TbOverview& r : ranks) dropped += r.dropped_steps;
  if (dropped > 0) result.notes.add(problem::tb_steps_dropped, {}, dropped);
  return result;
}

}  // namespace

extern const Analysis tb_overview_analysis = {
    .name = "tb-overview",
    .summary = "steps by kernel, copy, communication, runtime, input, CPU; device utilisation; what to try",
    .tables = {{"step-averages", "one row per rank and category: the mean step", step_averages_columns},
               {"step-breakdown", "one row per rank and step", step_breakdown_columns},
               {"device-utilization",
                "one row per rank and device: utilisation, SM efficiency, occupancy, tensor cores",
                device_utilization_columns},
               {"recommendations", "one row per rank and recommendation", recommendations_columns}},
    .run = run_tb_overview,
    .needs = AnalysisNeeds::kTorch};

}  // namespace stageline
