// The kernels of every rank, by name or by how they were launched. Definitions: docs/analyses/tb-kernel.md.
#include "analyses/analysis.h"
#include "model/statistics.h"
#include "profile/tb_run.h"

namespace stageline {
namespace {

struct Key {  // when only names count, all other fields keep their defaults
  StringId name = 0, op = 0, grid = 0, block = 0;
  int64_t registers = -1, shared_bytes = -1;
  KernelClass kind = KernelClass::kNone;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t h = 0;
    for (const uint64_t part : {uint64_t{key.name}, uint64_t{key.op}, uint64_t{key.grid}, uint64_t{key.block},
                                static_cast<uint64_t>(key.registers), static_cast<uint64_t>(key.shared_bytes),
                                static_cast<uint64_t>(key.kind)})
      h = (h ^ part) * 0x9e3779b97f4a7c15u + (h >> 29);
    return h;
  }
};

struct Weighted {  // mean weighted by duration, over the calls that have the value
  double sum = 0, weight = 0;
  bool recorded = false;

  void add(double value, int64_t dur_ns) {
    if (value < 0 || !std::isfinite(value)) return;
    recorded = true;
    sum += value * to_us(dur_ns);
    weight += to_us(dur_ns);
  }
};

struct Sum {
  Key key;
  int64_t calls = 0, total_ns = 0, max_ns = INT64_MIN, min_ns = INT64_MAX;
  Weighted blocks, occupancy;
};

struct RankKernels {
  int32_t rank = 0;
  std::vector<Sum> sums;  // longest total first
  int64_t total_ns = 0;
};

// Returns kernels by start: the order decides the last digit of a sum.
std::vector<const TorchRow*> kernel_rows(const TbRun& run, const TorchRank& rank) {
  std::vector<const TorchRow*> rows;
  for (const TorchRow& row : rank.rows)
    if (run.is_kernel(rank, row)) rows.push_back(&row);
  std::ranges::sort(rows, {}, [](const TorchRow* a) { return std::tie(a->start_ns, a->index); });
  return rows;
}

RankKernels kernels_of(const TbRun& run, const TorchRank& rank, bool by_launch) {
  RankKernels out;
  out.rank = rank.rank;
  const Part& part = *rank.part;
  std::unordered_map<Key, size_t, KeyHash> place;
  for (const TorchRow* at : kernel_rows(run, rank)) {
    const TorchRow& row = *at;
    const KernelFact* fact = fact_of(part.kernels, row.slice);
    Key key{.name = row.name, .kind = row.kernel};
    if (by_launch) {
      const uint32_t owner = part.slices.parent[row.slice];
      if (owner != kNoSliceIndex) key.op = part.slices.name_id[owner];
      if (fact) {
        key.grid = fact->grid;
        key.block = fact->block;
        key.registers = fact->registers;
        key.shared_bytes = fact->shared_bytes;
      }
    }
    const auto [it, added] = place.try_emplace(key, out.sums.size());
    if (added) {
      out.sums.emplace_back();
      out.sums.back().key = key;
    }
    Sum& sum = out.sums[it->second];
    ++sum.calls;
    sum.total_ns += row.dur_ns;
    out.total_ns += row.dur_ns;
    sum.max_ns = std::max(sum.max_ns, row.dur_ns);
    sum.min_ns = std::min(sum.min_ns, row.dur_ns);
    sum.blocks.add(fact ? decimal_of(fact->blocks_per_sm) : -1, row.dur_ns);
    sum.occupancy.add(fact ? decimal_of(fact->occupancy_percent) : -1, row.dur_ns);
  }
  const StringPool& names = run.torch.trace->names;
  const auto texts = [&](const Sum& s) {
    return std::tuple(names.text(s.key.name), names.text(s.key.op), names.text(s.key.grid), names.text(s.key.block),
                      s.key.registers, s.key.shared_bytes, s.key.kind);
  };
  std::ranges::sort(out.sums, [&](const Sum& a, const Sum& b) {
    return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : texts(a) < texts(b);
  });
  return out;
}

// Kernels without a duration have no weight, so their mean is NaN.
double weighted_mean(const Weighted& mean) { return mean.weight > 0 ? mean.sum / mean.weight : NAN; }

Table kernel_table(const TbRun& run, const std::vector<RankKernels>& ranks, bool by_launch) {
  Table table(declared_table(by_launch ? "tb-kernel/kernels-by-operator" : "tb-kernel/kernels"));
  const StringPool& names = run.torch.trace->names;
  const auto yes = [](bool is) { return std::string(is ? "yes" : "no"); };
  const auto known = [](int64_t value) { return value < 0 ? kNullInteger : value; };
  for (const RankKernels& rank : ranks)
    for (const Sum& s : rank.sums) {
      std::vector<Table::Value> row = {int64_t{rank.rank}, std::string(names.text(s.key.name)),
                                       std::string(kernel_class_name(s.key.kind))};
      if (by_launch) {
        for (const StringId id : {s.key.op, s.key.grid, s.key.block}) row.emplace_back(std::string(names.text(id)));
        row.emplace_back(known(s.key.registers));
        row.emplace_back(known(s.key.shared_bytes));
      }
      row.emplace_back(yes(run.is(s.key.name, TbRun::kTensorCore)));
      if (by_launch) row.emplace_back(yes(run.is(s.key.op, TbRun::kTensorOperator)));
      row.emplace_back(s.calls);
      row.emplace_back(s.total_ns);
      row.emplace_back(share_of(s.total_ns, rank.total_ns));
      row.emplace_back(std::llround(s.total_ns / static_cast<double>(s.calls)));
      row.emplace_back(s.max_ns);
      row.emplace_back(s.min_ns);
      row.emplace_back(weighted_mean(s.blocks));
      row.emplace_back(weighted_mean(s.occupancy) / 100);
      table.add_row(std::move(row));
    }
  return table;
}

// Returns what a report adds to the kernels that it already has from gpu-kernel-breakdown: of every rank, the longest
// kernels that have these values.
Table use_table(const TbRun& run, const std::vector<RankKernels>& ranks) {
  constexpr size_t kMaxPerRank = 40;
  Table table(declared_table("tb-kernel/kernel-use/report"));
  for (const RankKernels& rank : ranks) {
    size_t shown = 0;
    for (const Sum& s : rank.sums) {
      const bool tensor = run.is(s.key.name, TbRun::kTensorCore);
      if (!tensor && !s.blocks.recorded && !s.occupancy.recorded) continue;
      if (++shown > kMaxPerRank) break;
      table.add_row({int64_t{rank.rank}, std::string(run.torch.trace->names.text(s.key.name)), s.total_ns,
                     std::string(tensor ? "yes" : "no"), weighted_mean(s.blocks), weighted_mean(s.occupancy) / 100});
    }
  }
  return table;
}

}  // namespace

Result<AnalysisResult> run_tb_kernel(const AnalysisInput& input) {
  const bool by_launch = input.options.text("group-by", "kernel") == "kernel-and-operator";
  TRY(made, make_tb_run(*input.trace, input.include_last_step));
  const TbRun& tb = *made;
  const auto ranks = ask_ranks(tb.torch, [&](const TorchRank& rank) { return kernels_of(tb, rank, by_launch); });
  AnalysisResult result;
  if (input.for_report) {
    Table use = use_table(tb, ranks);
    if (use.row_count() > 0) result.tables.push_back(std::move(use));
    return result;
  }
  return result.with(kernel_table(tb, ranks, by_launch));
}

}  // namespace stageline
