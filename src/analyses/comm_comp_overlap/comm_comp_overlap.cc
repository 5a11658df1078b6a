// How much of the communication runs while something is computed. Definitions: docs/analyses/comm-comp-overlap.md.

#include <optional>

#include "analyses/analysis.h"
#include "analyses/comm_comp_overlap/overlap_by_kind.h"
#include "base/text.h"
#include "model/statistics.h"
#include "profile/device_time.h"

namespace stageline {
namespace {

Table hta_comm_comp_overlap_table(const std::vector<DeviceTime>& ranks) {
  Table table(declared_table("comm-comp-overlap/comm-comp-overlap/hta"));
  for (const DeviceTime& o : ranks)
    table.add_row({int64_t{o.rank}, round_to(100 * share_of(o.overlap_ns, o.communication_ns), 2)});
  return table;
}

Table exact_comm_comp_overlap_table(const std::vector<DeviceTime>& ranks) {
  Table table(declared_table("comm-comp-overlap/comm-comp-overlap"));
  for (const DeviceTime& o : ranks)
    if (o.any)
      table.add_row({int64_t{o.rank}, o.communication_ns, o.compute_ns, o.overlap_ns, o.exposed_communication_ns(),
                     share_of(o.overlap_ns, o.communication_ns)});
  return table;
}

// Reads "dp,edp;tp": sets of kinds. msprof-analyze's own by default.
std::vector<std::vector<std::string>> kind_sets(const AnalysisOptions& options) {
  std::vector<std::vector<std::string>> sets;
  const std::string all = options.text("kinds", "dp,edp;edp;dp;ep;pp;mp;tp");
  for (const std::string_view set : split(all, ';')) {
    sets.emplace_back();
    for (const std::string_view kind : split(set, ',')) sets.back().emplace_back(trim(kind));
  }
  return sets;
}

Table kinds_table(std::string_view variant, const std::vector<KindRows>& ranks) {
  Table table(declared_table("comm-comp-overlap/comm-comp-overlap-by-kind", variant));
  for (const KindRows& rows : ranks)
    for (const std::vector<Table::Value>& row : rows) table.add_row(row);
  return table;
}

Result<AnalysisResult> run_msprof_masking(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  const OpNames op_names(torch->trace->names);
  const auto sets = kind_sets(input.options);
  AnalysisResult result;
  return result.with(kinds_table("msprof", ask_ranks(*torch, [&](const TorchRank& rank) {
                                   return msprof_masking(*torch, rank, op_names, sets);
                                 })));
}

Result<AnalysisResult> run_comm_comp_overlap(const AnalysisInput& input) {
  if (input.msprof) return run_msprof_masking(input);
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  std::optional<OpNames> op_names;
  if (!input.hta) op_names.emplace(torch->trace->names);
  std::vector<KindRows> kinds(torch->parts.size());
  std::vector<DeviceTime> ranks(kinds.size());
  parallel_for(ranks.size(), [&](size_t k) {
    const auto rank = torch_rank(*torch, torch->parts[k]);
    ranks[k] = device_time(*torch, *rank);
    if (op_names) kinds[k] = overlap_by_kind(*torch, *rank, *op_names);
  });
  AnalysisResult result = answer_of(*torch);
  result.tables.push_back(input.hta ? hta_comm_comp_overlap_table(ranks) : exact_comm_comp_overlap_table(ranks));
  if (!input.hta) result.tables.push_back(kinds_table("", kinds));
  return result;
}

}  // namespace

extern const Analysis comm_comp_overlap_analysis = {
    .run = run_comm_comp_overlap, .needs = AnalysisNeeds::kTorch, .compat = "hta,msprof"};

}  // namespace stageline
