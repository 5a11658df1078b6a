#include "analyses/cluster/msprof.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {
namespace {

constexpr size_t kRivalGroups = 20;  // rows of TopEPTokensInfo

// Adds up the first dimensions of all inputs but the last two that are not empty: "1024,2048;512,2048;2,2048,8192;2" →
// 1536.
int64_t rival_tokens(std::string_view shapes) {
  std::vector<int64_t> firsts;
  while (!shapes.empty()) {
    const std::string_view shape = shapes.substr(0, shapes.find(';'));
    shapes.remove_prefix(std::min(shapes.size(), shape.size() + 1));
    const size_t digit = shape.find_first_of("0123456789");
    if (digit == shape.npos) continue;
    const std::string_view number = shape.substr(digit, shape.find_first_not_of("0123456789", digit) - digit);
    firsts.push_back(parse_int(number).value_or(0));
  }
  int64_t sum = 0;
  for (size_t i = 0; i + 2 < firsts.size(); ++i) sum += firsts[i];
  return sum;
}

struct RankTokens {
  int32_t rank = 0;
  std::string experts;
  int64_t tokens = 0;
  bool any = false;
};

RankTokens rival_tokens_of(const TorchRun& run, const TorchRank& rank) {
  const StringPool& names = run.trace->names;
  RankTokens out{rank.rank, {}, 0, false};
  for (const RankGroup& group : groups_of_metadata(*rank.part))
    if (group.purpose == "exp") out.experts = number_list(group.ranks);
  for (const TorchRow& row : rank.rows) {
    const TaskFact* task = row.on_device ? fact_of(rank.part->tasks, row.slice) : nullptr;
    const InputFact* inputs = task ? fact_of(rank.part->inputs, row.slice) : nullptr;
    if (!inputs || names.text(task->op_type) != "GroupedMatmul") continue;
    out.any = true;
    out.tokens += rival_tokens(names.text(inputs->dims));
  }
  return out;
}

}  // namespace

std::vector<Table> msprof_expert_load(const TorchRun& run) {
  Table ranks(declared_table("expert-load/expert-load/msprof")),
      groups(declared_table("expert-load/expert-groups/msprof"));
  struct Tokens {
    int64_t min = INT64_MAX, max = 0;
    int64_t difference() const { return max - min; }
  };
  std::map<std::string, Tokens> of_group;
  for (const RankTokens& rank : ask_ranks(run, [&](const TorchRank& r) { return rival_tokens_of(run, r); })) {
    if (!rank.any) continue;
    ranks.add_row({int64_t{rank.rank}, rank.experts, rank.tokens});
    Tokens& tokens = of_group[rank.experts];
    tokens.min = std::min(tokens.min, rank.tokens);
    tokens.max = std::max(tokens.max, rank.tokens);
  }
  std::vector<std::pair<std::string, Tokens>> sorted(of_group.begin(), of_group.end());
  sort_stably(sorted, std::ranges::greater{}, [](const auto& group) { return group.second.difference(); });
  for (size_t i = 0; i < sorted.size() && i < kRivalGroups; ++i)
    groups.add_row({sorted[i].first, sorted[i].second.difference()});
  std::vector<Table> out;
  out.push_back(std::move(ranks));
  out.push_back(std::move(groups));
  return out;
}

}  // namespace stageline
