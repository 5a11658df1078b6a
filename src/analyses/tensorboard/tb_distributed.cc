// Computation, communication and their overlap; waiting and transfer; and statistics of collectives, for every rank.
// Definitions: docs/analyses/tb-distributed.md.
#include <algorithm>

#include "analyses/analysis.h"
#include "analyses/tensorboard/problems.h"
#include "analyses/tensorboard/tb_distributed_tables.h"
#include "base/parallel.h"

namespace stageline {
namespace {

Result<AnalysisResult> run_tb_distributed(const AnalysisInput& input) {
  TRY(made, make_tb_run(*input.trace, input.include_last_step));
  const TbRun& tb = *made;
  std::vector<TbRankWork> ranks(tb.torch.parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = tb_work(tb, tb_rank(tb, tb.torch.parts[k])); });
  AnalysisResult result;
  const TbJoin join = join_work(ranks);
  if (input.for_report &&
      std::all_of(ranks.begin(), ranks.end(), [](const TbRankWork& rank) { return rank.calls.empty(); }))
    return result;  // nothing was communicated, which is not a flaw
  result.tables = distributed_tables(tb, ranks, input.for_report);
  if (join.alone > 0 && ranks.size() > 1) result.notes.add(problem::tb_collectives_alone, {}, join.alone);
  if (join.unequal > 0) result.notes.add(problem::tb_collectives_unequal, {}, join.unequal);
  return result;
}

}  // namespace

extern const Analysis tb_distributed_analysis = {
    .name = "tb-distributed",
    .summary = "computation, communication and overlap of every rank; waiting and transfer; statistics of collectives",
    .tables = {{"overlap", "one row per rank: the mean step", [] { return tb_overlap_columns(false); }},
               {"waits", "one row per rank: waiting and transfer of the mean step",
                [] { return tb_wait_columns(false); }},
               {"collectives", "one row per rank and collective", tb_collectives_columns},
               {"collectives-by-size", "one row per collective and size of message, all ranks", tb_sizes_columns},
               {"overlap-by-step", "one row per rank and step", [] { return tb_overlap_columns(true); }},
               {"waits-by-step", "one row per rank and step", [] { return tb_wait_columns(true); }}},
    .run = run_tb_distributed,
    .needs = AnalysisNeeds::kTorch};

}  // namespace stageline
