// The operators of every rank with their host, device and tensor-core time. Definitions: docs/analyses/tb-operator.md.
#include "analyses/analysis.h"
#include "model/statistics.h"
#include "profile/tb_advice.h"

namespace stageline {
namespace {

struct Sum {
  StringId name = 0, dims = 0;
  TbOperator total;
  int64_t calls = 0;
};

struct RankOperators {
  int32_t rank = 0;
  std::vector<Sum> sums;
  bool any_device = false;
};

RankOperators operators_of(const TbRun& run, const FunctionNames& names, const TorchRank& rank, bool by_shape) {
  RankOperators out;
  out.rank = rank.rank;
  std::unordered_map<uint64_t, size_t> place;
  for_each_tb_operator(run, names, rank, [&](const TbOperator& call) {
    StringId dims = 0;
    if (by_shape)
      if (const InputFact* fact = fact_of(rank.part->inputs, call.slice)) dims = fact->dims;
    const auto [it, added] = place.try_emplace(uint64_t{call.name} << 32 | dims, out.sums.size());
    if (added) {
      out.sums.emplace_back();
      out.sums.back().name = call.name;
      out.sums.back().dims = dims;
    }
    Sum& sum = out.sums[it->second];
    ++sum.calls;
    sum.total.host_ns += call.host_ns;
    sum.total.self_host_ns += call.self_host_ns;
    sum.total.device_ns += call.device_ns;
    sum.total.self_device_ns += call.self_device_ns;
    sum.total.tensor_ns += call.tensor_ns;
    sum.total.self_tensor_ns += call.self_tensor_ns;
    sum.total.eligible |= call.eligible;
  });
  out.any_device = std::ranges::any_of(rank.rows, [](const TorchRow& row) { return row.on_device; });
  const StringPool& texts = run.torch.trace->names;  // of shapes; an operator without its overload may be no name of it
  sort_stably(out.sums, [&](const Sum& a, const Sum& b) {
    const int64_t left = out.any_device ? a.total.self_device_ns : a.total.self_host_ns;
    const int64_t right = out.any_device ? b.total.self_device_ns : b.total.self_host_ns;
    if (left != right) return left > right;
    if (a.total.device_ns != b.total.device_ns) return a.total.device_ns > b.total.device_ns;
    if (a.total.host_ns != b.total.host_ns) return a.total.host_ns > b.total.host_ns;
    return a.name != b.name ? names.text(a.name) < names.text(b.name) : texts.text(a.dims) < texts.text(b.dims);
  });
  return out;
}

std::string shape_of(const StringPool& names, StringId dims) {
  return dims == 0 ? "[]" : std::string(names.text(dims));
}

Table operator_table(const TbRun& run, const FunctionNames& names, const std::vector<RankOperators>& ranks,
                     bool by_shape) {
  Table table(declared_table(by_shape ? "tb-operator/operators-by-shape" : "tb-operator/operators"));
  for (const RankOperators& rank : ranks)
    for (const Sum& s : rank.sums) {
      const TbOperator& t = s.total;
      std::vector<Table::Value> row = {int64_t{rank.rank}, std::string(names.text(s.name))};
      if (by_shape) row.emplace_back(shape_of(run.torch.trace->names, s.dims));
      row.emplace_back(s.calls);
      for (const int64_t ns : {t.self_device_ns, t.device_ns, t.self_host_ns, t.host_ns}) row.emplace_back(ns);
      row.emplace_back(std::string(t.eligible ? "yes" : "no"));
      row.emplace_back(share_of(t.self_tensor_ns, t.self_device_ns));
      row.emplace_back(share_of(t.tensor_ns, t.device_ns));
      table.add_row(std::move(row));
    }
  return table;
}

}  // namespace

Result<AnalysisResult> run_tb_operator(const AnalysisInput& input) {
  const bool by_shape = input.options.text("group-by", "operator") == "operator-and-shape";
  TRY(made, make_tb_run(*input.trace, input.include_last_step));
  const TbRun& tb = *made;
  const FunctionNames names(*input.trace);
  const auto ranks =
      ask_ranks(tb.torch, [&](const TorchRank& rank) { return operators_of(tb, names, rank, by_shape); });
  AnalysisResult result;
  return result.with(operator_table(tb, names, ranks, by_shape));
}

}  // namespace stageline
