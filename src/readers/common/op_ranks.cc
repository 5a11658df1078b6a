// resolve_ranks: which rank a row belongs to, when sources name it in different ways.
#include "model/problems.h"
#include "readers/common/ops.h"

namespace stageline {
namespace {

using Position = std::pair<int32_t, int32_t>;  // stage, dp

struct OpRankFacts {
  std::set<Position> positions;  // as in the rows; kUnknown when they do not record it
  int32_t stage = kUnknown, dp = kUnknown;
};

// Calls body with the first row of each run of rows with the same (rank, stage, dp); such runs are long.
template <class Body> void for_each_run(const std::vector<Op>& ops, Body body) {
  const auto key = [](const Op& op) { return std::tuple(op.rank, op.stage, op.dp); };
  for (size_t i = 0; i < ops.size(); ++i)
    if (i == 0 || key(ops[i]) != key(ops[i - 1])) body(ops[i]);
}

void fill_missing_ranks(std::vector<Op>& ops, std::string_view format, Diagnostics& diagnostics) {
  std::map<Position, int32_t> rank_of;
  int32_t dp_count = 1;
  bool any_rank = false, any_missing = false;
  for_each_run(ops, [&](const Op& op) {
    any_rank |= op.rank != kUnknown;
    any_missing |= op.rank == kUnknown;
    dp_count = std::max(dp_count, op.dp + 1);
    if (op.rank != kUnknown && op.stage != kUnknown) rank_of.emplace(Position(op.stage, op.dp), op.rank);
  });
  if (!any_missing) return;
  std::set<Position> inferred;
  for (Op& op : ops) {
    if (op.rank != kUnknown || op.stage == kUnknown) continue;
    if (const auto it = rank_of.find({op.stage, op.dp}); it != rank_of.end()) {
      op.rank = it->second;
    } else if (const int64_t rank = int64_t{op.stage} * dp_count + std::max(op.dp, 0);
               !any_rank && rank <= kMaxRankNumber) {
      inferred.insert({op.stage, op.dp});
      op.rank = static_cast<int32_t>(rank);
    }
  }
  diagnostics.add(problem::reader_ranks_inferred.of(format), {}, inferred.size());
  const size_t before = ops.size();
  std::erase_if(ops, [](const Op& op) { return op.rank == kUnknown; });
  diagnostics.add(problem::reader_without_rank.of(format), {}, before - ops.size());
}

std::map<int32_t, OpRankFacts> gather(const std::vector<Op>& ops) {
  std::map<int32_t, OpRankFacts> facts;
  for_each_run(ops, [&](const Op& op) {
    OpRankFacts& rank = facts[op.rank];
    if (rank.stage == kUnknown) rank.stage = op.stage;
    if (rank.dp == kUnknown) rank.dp = op.dp;
    rank.positions.insert({op.stage, op.dp});
  });
  return facts;
}

bool conflicts(const OpRankFacts& rank) {
  return std::ranges::any_of(rank.positions, [&](const Position& at) {
    return (at.first != kUnknown && at.first != rank.stage) || (at.second != kUnknown && at.second != rank.dp);
  });
}

// Makes rank numbers unique where one number stands for several places: it may be a rank within a group, or two files
// carry the same one.
bool renumber_conflicts(std::vector<Op>& ops, const std::map<int32_t, OpRankFacts>& facts, std::string_view format,
                        Diagnostics& diagnostics) {
  int64_t count = sum_over<int64_t>(facts, [&](const auto& entry) { return conflicts(entry.second); });
  if (count == 0) return false;
  const auto key = [&](const Op& op) {  // a row without stage or dp goes with the first place of its rank
    const OpRankFacts& rank = facts.at(op.rank);
    return std::tuple(op.stage == kUnknown ? rank.stage : op.stage, op.dp == kUnknown ? rank.dp : op.dp, op.rank);
  };
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> number;
  for_each_run(ops, [&](const Op& op) { number.emplace(key(op), 0); });
  int32_t next = 0;
  for (auto& [place, rank] : number) rank = next++;
  for (Op& op : ops) {
    const auto place = key(op);
    std::tie(op.stage, op.dp, std::ignore) = place;
    op.rank = number.at(place);
  }
  diagnostics.add(problem::reader_conflicting_ranks.of(format), {}, count);
  return true;
}

}  // namespace

void resolve_ranks(std::vector<Op>& ops, std::string_view format, Diagnostics& diagnostics) {
  fill_missing_ranks(ops, format, diagnostics);
  std::map<int32_t, OpRankFacts> facts = gather(ops);
  if (renumber_conflicts(ops, facts, format, diagnostics)) facts = gather(ops);
  std::map<int32_t, int32_t> peers;
  int64_t inferred = 0;
  for (auto& [number, rank] : facts) {
    if (rank.stage == kUnknown) continue;
    const int32_t peer = peers[rank.stage]++;
    if (rank.dp != kUnknown) continue;
    rank.dp = peer;
    ++inferred;
  }
  diagnostics.add(problem::reader_dp_inferred.of(format), {}, inferred);
  const OpRankFacts* rank = nullptr;
  int32_t number = kUnknown;
  for (Op& op : ops) {
    if (!rank || op.rank != number) rank = &facts.at(number = op.rank);
    op.stage = rank->stage;
    op.dp = rank->dp;
  }
}

}  // namespace stageline
