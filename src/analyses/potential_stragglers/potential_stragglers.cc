// Which rank the others wait for in collectives. Definitions: docs/analyses/potential-stragglers.md.
#include <algorithm>

#include "analyses/analysis.h"
#include "analyses/potential_stragglers/problems.h"
#include "base/parallel.h"
#include "compat/hta/hta_stragglers.h"
#include "model/statistics.h"
#include "profile/collective_waits.h"

namespace stageline {
namespace {

std::vector<ColumnSpec> potential_stragglers_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"is_candidate", "candidate", Type::kInteger,
           "1 for the ranks that cause most waiting, --num-candidates of them"},
          {"collective_count", "collectives", Type::kInteger, "Collectives matched with other ranks"},
          {"last_count", "came last", Type::kInteger, "Number of collectives in which it came last"},
          {"last_share", "came last", Type::kShare, "Those as a share of its collectives"},
          {"caused_wait_ns", "caused waiting", Type::kDuration, "Time that others waited for it, summed over them"},
          {"caused_wait_share", "caused waiting", Type::kShare, "That as a share of all waiting of the run"},
          {"wait_ns", "waits", Type::kDuration, "Time that it waited for others inside collectives"}};
}

Table rank_potential_stragglers_table(const TorchRun& run, const CollectiveSums& sums, size_t candidates) {
  Table table("potential-stragglers", "Who the others wait for", potential_stragglers_columns());
  int64_t total = 0;
  std::vector<size_t> order;
  for (size_t k = 0; k < sums.ranks.size(); ++k) {
    total += sums.ranks[k].caused_ns;
    if (sums.ranks[k].collectives > 0) order.push_back(k);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sums.ranks[a].caused_ns > sums.ranks[b].caused_ns; });
  for (size_t i = 0; i < order.size(); ++i) {
    const RankWaits& r = sums.ranks[order[i]];
    table.add_row({int64_t{run.trace->parts[run.parts[order[i]]].rank},
                   int64_t{i < candidates && r.caused_ns > 0 ? 1 : 0}, r.collectives, r.last,
                   share_of(r.last, r.collectives), r.caused_ns, share_of(r.caused_ns, total), r.wait_ns});
  }
  return table;
}

std::vector<ColumnSpec> collective_waits_columns() {
  return {
      {"group", "group", Type::kText, "Process group"},
      {"group_ranks", "ranks of the group", Type::kText, "Ranks of the group in the trace, where long lists are cut"},
      {"collective", "collective", Type::kText, "Collective, or the kernel's name where there is none"},
      {"rank_count", "ranks", Type::kInteger, "Largest number of this trace's ranks in one of them"},
      {"count", "count", Type::kInteger, "Collectives matched over at least two ranks"},
      {"wait_ns", "waiting", Type::kDuration, "Summed over collectives and ranks"},
      {"max_wait_ns", "longest wait", Type::kDuration, "Longest wait of one rank in one collective"},
      {"worst_rank", "worst rank", Type::kInteger, "The rank that caused most of the waiting"},
      {"end_spread_ns", "spread of ends", Type::kDuration,
       "Median of last end − first end by the files' clocks: ranks leave together, so this is how far to "
       "trust the clocks between ranks. No other number here compares clocks"}};
}

Table kind_table(const TorchRun& run, const CollectiveSums& sums) {
  Table table("collective-waits", "Waiting inside collectives", collective_waits_columns());
  for (const auto& [key, kind] : sums.kinds) {
    const auto& [group, group_ranks, name] = key;
    int64_t worst = kNullInteger, most = 0;
    for (const auto& [rank, caused] : kind.caused_ns)
      if (caused > most) {
        most = caused;
        worst = rank;
      }
    std::vector<double> spread = kind.end_spread_ns;
    std::sort(spread.begin(), spread.end());
    const auto text = [&](StringId id) { return std::string(run.trace->names.text(id)); };
    table.add_row({text(group), text(group_ranks), text(name), kind.ranks, kind.count, kind.wait_ns, kind.longest_ns,
                   worst, static_cast<int64_t>(quantile(spread, 0.5))});
  }
  return table;
}

Table hta_potential_stragglers_table(const std::vector<int32_t>& ranks) {
  Table table("potential-stragglers", "Potential stragglers (HTA)", {{"rank", "rank", Type::kInteger, ""}});
  for (const int32_t rank : ranks) table.add_row({int64_t{rank}});
  return table;
}

Result<AnalysisResult> run_potential_stragglers(const AnalysisInput& input) {
  TRY(steps, input.options.numbers("profiler-steps"));
  TRY(candidates, input.options.integer("num-candidates", 2, input.hta ? INT64_MIN : 0));
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  AnalysisResult result;
  note_last_step(*torch, result.notes);
  if (input.hta) {
    TRY(ranks, hta_stragglers(*torch, *steps, input.options.has("profiler-steps"), *candidates));
    result.tables.push_back(hta_potential_stragglers_table(*ranks));
    return result;
  }
  const CollectiveCalls calls(torch->trace->names);
  std::vector<RankCalls> ranks(torch->parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = calls.of(*torch_rank(*torch, torch->parts[k]), k, *steps); });
  const CollectiveSums sums = collective_sums(*torch, ranks);
  int64_t left_out = 0;
  for (const RankCalls& rank : ranks) left_out += rank.left_out;
  const auto is_empty = [](const RankCalls& rank) { return rank.list.empty() && rank.left_out == 0; };
  if (!steps->empty() && std::all_of(ranks.begin(), ranks.end(), is_empty))
    result.notes.add(problem::straggler_no_steps);
  if (left_out > 0) result.notes.add(problem::straggler_not_synchronising, {}, left_out);
  if (sums.alone > 0 && ranks.size() > 1) result.notes.add(problem::straggler_no_counterpart, {}, sums.alone);
  result.tables.push_back(rank_potential_stragglers_table(*torch, sums, *candidates));
  result.tables.push_back(kind_table(*torch, sums));
  return result;
}

}  // namespace

extern const Analysis potential_stragglers_analysis = {
    .name = "potential-stragglers",
    .summary = "ranks that the others wait for in collectives",
    .tables = {{"potential-stragglers", "one row per rank, who causes most waiting first",
                potential_stragglers_columns},
               {"collective-waits", "one row per process group and collective", collective_waits_columns}},
    .run = run_potential_stragglers,
    .needs = AnalysisNeeds::kTorch,
    .options = {{"profiler-steps", "LIST", "Only these profiler steps, such as 15-17; default all", ""},
                {"num-candidates", "N", "How many ranks to call candidates; default 2", ""}},
    .compat = "hta"};

}  // namespace stageline
