// Finds the ranks that the others wait for in collectives. Definitions: docs/analyses/potential-stragglers.md.
#include "analyses/analysis.h"
#include "analyses/potential_stragglers/problems.h"
#include "compat/hta/hta.h"
#include "model/statistics.h"
#include "profile/communication_ops.h"

namespace stageline {
namespace {

Table rank_potential_stragglers_table(const TorchRun& run, const CollectiveSums& sums, size_t candidates) {
  Table table(declared_table("potential-stragglers/potential-stragglers"));
  int64_t total = 0;
  std::vector<size_t> order;
  for (size_t k = 0; k < sums.ranks.size(); ++k) {
    total += sums.ranks[k].caused_ns;
    if (sums.ranks[k].collectives > 0) order.push_back(k);
  }
  sort_stably(order, std::greater(), [&](size_t a) { return sums.ranks[a].caused_ns; });
  for (size_t i = 0; i < order.size(); ++i) {
    const RankWaits& r = sums.ranks[order[i]];
    table.add_row({int64_t{run.trace->parts[run.parts[order[i]]].rank},
                   int64_t{i < candidates && r.caused_ns > 0 ? 1 : 0}, r.collectives, r.last,
                   share_of(r.last, r.collectives), r.caused_ns, share_of(r.caused_ns, total), r.wait_ns});
  }
  return table;
}

Table kind_table(const TorchRun& run, const CollectiveSums& sums) {
  Table table(declared_table("potential-stragglers/collective-waits"));
  for (const auto& [key, kind] : sums.kinds) {
    const auto& [group, group_ranks, name] = key;
    int64_t worst = kNullInteger, max = 0;
    for (const auto& [rank, caused] : kind.caused_ns)
      if (caused > max) max = caused, worst = rank;
    std::vector<double> spread = kind.end_spread_ns;
    std::ranges::sort(spread);
    const auto text = [&](StringId id) { return std::string(run.trace->names.text(id)); };
    table.add_row({text(group), text(group_ranks), text(name), kind.ranks, kind.count, kind.wait_ns, kind.longest_ns,
                   worst, static_cast<int64_t>(quantile(spread, 0.5))});
  }
  return table;
}

Table hta_potential_stragglers_table(const std::vector<int32_t>& ranks) {
  Table table(declared_table("potential-stragglers/potential-stragglers/hta"));
  for (const int32_t rank : ranks) table.add_row({int64_t{rank}});
  return table;
}

}  // namespace

Result<AnalysisResult> run_potential_stragglers(const AnalysisInput& input) {
  TRY(steps, input.options.numbers("profiler-steps"));
  TRY(candidates, input.options.integer("num-candidates", 2, input.hta ? INT64_MIN : 0));
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  AnalysisResult result = answer_of(*torch);
  if (input.hta) {
    TRY(ranks, hta_stragglers(*torch, *steps, input.options.has("profiler-steps"), *candidates));
    return result.with(hta_potential_stragglers_table(*ranks));
  }
  std::vector<std::vector<CommunicationOp>> ops = all_communication_ops(*torch);
  const auto is_unwanted = [&](const CommunicationOp& op) { return !std::ranges::binary_search(*steps, op.step); };
  for (std::vector<CommunicationOp>& rank : ops)
    if (!steps->empty()) std::erase_if(rank, is_unwanted);
  const Matched matched = match_collectives(ops);
  const CollectiveSums sums = collective_sums(*torch, matched);
  if (!steps->empty() && std::ranges::all_of(ops, [](const auto& rank) { return rank.empty(); }))
    result.notes.add(problem::straggler_no_steps);
  result.notes.add(problem::straggler_not_synchronising, {}, matched.not_matched);
  if (matched.alone > 0 && ops.size() > 1) result.notes.add(problem::straggler_no_counterpart, {}, matched.alone);
  return result.with(rank_potential_stragglers_table(*torch, sums, *candidates), kind_table(*torch, sums));
}

}  // namespace stageline
