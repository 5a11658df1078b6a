// Counts the tokens of the experts of every rank, and finds how much longer the fullest rank's took. Definitions:
// docs/analyses/expert-load.md.
#include "analyses/analysis.h"
#include "analyses/cluster/msprof.h"
#include "base/error_words.h"
#include "model/statistics.h"
#include "pipeline/cells/rank_layout.h"
#include "profile/expert_products.h"

namespace stageline {
namespace {

constexpr int64_t kMaxInReport = 10'000;  // products that a report lists

struct Load {
  int64_t products = 0, tokens = 0;  // forward
  int64_t forward_ns = 0, backward_ns = 0;
  int64_t kernel_ns() const { return forward_ns + backward_ns; }
};
struct RankLoad {
  int32_t rank = 0;
  std::vector<int32_t> experts;  // the ranks that share experts with it
  std::vector<ExpertProduct> products;
  std::map<int32_t, Load> steps;  // −1: outside of steps
};

RankLoad load_of(const TorchRun& run, const TorchRank& rank, const std::vector<bool>& grouped) {
  RankLoad out{rank.rank, expert_ranks(run.trace->names, *rank.part), expert_products(run, rank, grouped), {}};
  for (const ExpertProduct& product : out.products) {
    Load& load = out.steps[product.step];
    (product.backward ? load.backward_ns : load.forward_ns) += product.kernel_ns;
    if (product.backward) continue;
    ++load.products;
    load.tokens += product.tokens;
  }
  return out;
}

Table::Value step_value(int32_t step) { return step < 0 ? kNullInteger : int64_t{step}; }

Table ranks_table(const std::vector<RankLoad>& ranks) {
  Table table(declared_table("expert-load/expert-load"));
  for (const RankLoad& rank : ranks)
    for (const auto& [step, load] : rank.steps)
      table.add_row({int64_t{rank.rank}, step_value(step), number_list(rank.experts), load.products, load.tokens,
                     load.forward_ns, load.backward_ns});
  return table;
}

// One row for each step and group of which two ranks are in the trace. Ranks whose group is unknown have none.
Table groups_table(const std::vector<RankLoad>& ranks) {
  struct Member {
    int32_t rank = 0;
    const Load* load = nullptr;
  };
  std::map<std::pair<int32_t, std::vector<int32_t>>, std::vector<Member>> groups;
  for (const RankLoad& rank : ranks)
    for (const auto& [step, load] : rank.steps)
      if (!rank.experts.empty()) groups[{step, rank.experts}].push_back({rank.rank, &load});
  Table table(declared_table("expert-load/expert-groups"));
  for (const auto& [key, members] : groups) {
    if (members.size() < 2) continue;
    const Member& fullest = *std::ranges::max_element(members, {}, [](const Member& m) { return m.load->tokens; });
    double tokens = 0, kernel_ns = 0;
    for (const Member& m : members) {
      tokens += static_cast<double>(m.load->tokens) / static_cast<double>(members.size());
      kernel_ns += static_cast<double>(m.load->kernel_ns()) / static_cast<double>(members.size());
    }
    table.add_row({step_value(key.first), number_list(key.second), std::ssize(members), tokens, fullest.load->tokens,
                   int64_t{fullest.rank}, share_of(static_cast<double>(fullest.load->tokens), tokens),
                   std::llround(static_cast<double>(fullest.load->kernel_ns()) - kernel_ns)});
  }
  return table;
}

Table products_table(const std::vector<RankLoad>& ranks) {
  Table table(declared_table("expert-load/expert-products"));
  for (const RankLoad& rank : ranks) {
    std::map<int32_t, int64_t> place;  // of the next product in its step
    for (const ExpertProduct& product : rank.products)
      if (!product.backward)
        table.add_row(
            {int64_t{rank.rank}, step_value(product.step), place[product.step]++, product.tokens, product.kernel_ns});
  }
  return table;
}

}  // namespace

Result<AnalysisResult> run_expert_load(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  AnalysisResult result;
  if (input.msprof) return result.with(msprof_expert_load(*torch));
  const std::vector<bool> grouped = grouped_names(torch->trace->names);
  const auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) { return load_of(*torch, rank, grouped); });
  const auto products =
      sum_over<int64_t>(ranks, [](const RankLoad& rank) { return static_cast<int64_t>(rank.products.size()); });
  if (products == 0 && input.for_report) return result;  // nothing was asked: no flaw
  if (products == 0)
    return worded_error(ErrorCode::kNotFound, "expert_load.none", {}, {},
                        "record with record_shapes=True (torch.profiler) or at Level1 (Ascend)");
  result.add(ranks_table(ranks), groups_table(ranks));
  return products > kMaxInReport && input.for_report ? std::move(result) : result.with(products_table(ranks));
}

}  // namespace stageline
