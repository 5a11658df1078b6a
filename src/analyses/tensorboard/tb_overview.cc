// Where the time of the steps went, by the categories of TensorBoard's profiler plugin, how full the devices were, and
// what to try. Definitions: docs/analyses/tb-overview.md.
#include "analyses/analysis.h"
#include "analyses/tensorboard/problems.h"
#include "model/statistics.h"
#include "profile/tb_advice.h"

namespace stageline {
namespace {

Table averages_table(const std::vector<TbOverview>& ranks) {
  Table table(declared_table("tb-overview/step-averages"));
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

Table steps_table(const std::vector<TbOverview>& ranks) {
  Table table(declared_table("tb-overview/step-breakdown"));
  for (const TbOverview& r : ranks)
    for (size_t i = 0; i < r.steps.size(); ++i) {
      std::vector<Table::Value> row = {int64_t{r.rank}, r.steps[i].number, r.steps[i].length_ns()};
      for (const int64_t ns : r.costs[i]) row.emplace_back(ns);
      table.add_row(std::move(row));
    }
  return table;
}

Table devices_table(const std::vector<TbOverview>& ranks) {
  Table table(declared_table("tb-overview/device-utilization"));
  for (const TbOverview& r : ranks)
    for (const TbDevice& d : r.devices)
      table.add_row({int64_t{r.rank}, d.number, d.name, d.kernel_count, d.utilization, d.sm_efficiency, d.occupancy,
                     d.tensor_cores});
  return table;
}

Table advice_table(const std::vector<TbOverview>& ranks) {
  Table table(declared_table("tb-overview/recommendations"));
  for (const TbOverview& r : ranks)
    for (const TbAdvice& advice : tb_advice(r))
      table.add_row({int64_t{r.rank}, std::string(advice.id), advice.share, advice.text});
  return table;
}

}  // namespace

Result<AnalysisResult> run_tb_overview(const AnalysisInput& input) {
  TRY(made, make_tb_run(*input.trace, input.include_last_step));
  const TbRun& tb = *made;
  const FunctionNames names(*input.trace);
  std::vector<TbOverview> ranks(tb.torch.parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = tb_overview(tb, names, tb_rank(tb, tb.torch.parts[k])); });
  AnalysisResult result;
  result.add(averages_table(ranks), steps_table(ranks), devices_table(ranks), advice_table(ranks));
  const int64_t dropped = sum_over<int64_t>(ranks, &TbOverview::dropped_steps);
  result.notes.add(problem::tb_steps_dropped, {}, dropped);
  return result;
}

}  // namespace stageline
