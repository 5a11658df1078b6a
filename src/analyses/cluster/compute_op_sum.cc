// Kernels by name, type and shapes: how often, how long. Definitions: docs/analyses/compute-op-sum.md.
#include "analyses/cluster/cluster.h"
#include "model/statistics.h"

namespace stageline {
namespace {

struct Key {
  StringId name = 0, type = 0, unit = 0, shapes = 0;
  auto tied() const { return std::tie(name, type, unit, shapes); }
  bool operator<(const Key& other) const { return tied() < other.tied(); }
};
using Sums = std::map<Key, std::vector<int64_t>>;
struct RankAnswer {
  int32_t rank = 0;
  Sums sums;
};

Key key_of(const Part& part, const TorchRow& row) {
  Key key{.name = row.name};
  if (const TaskFact* task = fact_of(part.tasks, row.slice)) {
    key.type = task->op_type;
    key.unit = task->unit;
  }
  const InputFact* input = fact_of(part.inputs, row.slice);
  const uint32_t owner = part.slices.parent[row.slice];
  if (!input && owner != kNoSliceIndex) input = fact_of(part.inputs, owner);
  if (input) key.shapes = input->dims;
  return key;
}

// Returns true for rows that are counted. msprof-analyze counts all rows of COMPUTE_TASK_INFO, whatever kind of work
// they are.
bool counts(const Part& part, const TorchRow& row, bool msprof) {
  if (!row.on_device) return false;
  return row.kernel == KernelClass::kComputation || (msprof && fact_of(part.tasks, row.slice) != nullptr);
}

RankAnswer answer_for(const TorchRank& rank, bool msprof) {
  RankAnswer answer;
  answer.rank = rank.rank;
  for (const TorchRow& row : rank.rows)
    if (counts(*rank.part, row, msprof)) answer.sums[key_of(*rank.part, row)].push_back(row.dur_ns);
  return answer;
}

struct Line {
  const Key* key = nullptr;
  int64_t rank = 0, sum = 0;
  std::vector<int64_t> ns;
};

class Writer {
 public:
  Writer(const StringPool& names, bool msprof) : names_(names), msprof_(msprof) {}

  // Sorts the largest sum first. Equal sums are sorted by the texts of their names, so that the order does not depend
  // on ids in the pool.
  void sort(std::vector<Line>& lines) const {
    for (Line& line : lines) line.sum = sum_of(line.ns);
    sort_stably(lines, [&](const Line& a, const Line& b) {
      if (a.sum != b.sum) return a.sum > b.sum;
      const auto texts = [&](const Line& x) {
        return std::tuple(names_.text(x.key->name), names_.text(x.key->type), names_.text(x.key->unit),
                          names_.text(x.key->shapes), x.rank);
      };
      return texts(a) < texts(b);
    });
  }
  void fill(Table& table, std::vector<Line> lines, bool by_name, bool by_rank) const {
    sort(lines);
    const int64_t whole = sum_over<int64_t>(lines, &Line::sum);
    for (Line& line : lines) {
      std::vector<Table::Value> keys;
      const auto text = [&](StringId id) { keys.emplace_back(std::string(names_.text(id))); };
      if (by_name) text(line.key->name);
      text(line.key->type);
      text(line.key->unit);
      if (by_name) text(line.key->shapes);
      if (by_rank) keys.insert(msprof_ ? keys.end() : keys.begin(), Table::Value(line.rank));
      if (!msprof_) keys.emplace_back(share_of(line.sum, whole));
      table.add_row(with_durations(std::move(keys), line.ns, msprof_));
    }
  }

 private:
  const StringPool& names_;
  bool msprof_;
};

std::vector<Line> lines_by_type(const std::vector<RankAnswer>& ranks, bool by_rank, std::map<Key, Key>& keys) {
  std::map<std::pair<int64_t, Key>, std::vector<int64_t>> sums;
  for (const RankAnswer& rank : ranks)
    for (const auto& [key, ns] : rank.sums) {
      const Key type{0, key.type, key.unit, 0};
      keys.emplace(type, type);
      std::vector<int64_t>& to = sums[{by_rank ? rank.rank : 0, type}];
      to.insert(to.end(), ns.begin(), ns.end());
    }
  std::vector<Line> lines;
  for (auto& [key, ns] : sums) lines.push_back({&keys.at(key.second), key.first, 0, std::move(ns)});
  return lines;
}

}  // namespace

Result<AnalysisResult> run_compute_op_sum(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) { return answer_for(rank, input.msprof); });
  const Writer writer(torch->trace->names, input.msprof);
  const std::string_view variant = input.msprof ? "msprof" : "";
  std::map<Key, Key> types;
  AnalysisResult result;
  note_level_none(input, result.notes);
  Table all(declared_table("compute-op-sum/compute-op-types", variant));
  writer.fill(all, lines_by_type(ranks, false, types), false, false);
  Table by_rank(declared_table("compute-op-sum/compute-op-types-by-rank", variant));
  writer.fill(by_rank, lines_by_type(ranks, true, types), false, true);
  std::vector<Line> lines;
  for (RankAnswer& rank : ranks)
    for (auto& [key, ns] : rank.sums) lines.push_back({&key, rank.rank, 0, std::move(ns)});
  Table by_name(declared_table("compute-op-sum/compute-ops", variant));
  writer.fill(by_name, std::move(lines), true, true);
  return result.with(std::move(all), std::move(by_rank), std::move(by_name));
}

}  // namespace stageline
