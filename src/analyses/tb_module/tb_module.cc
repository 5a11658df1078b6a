// Time of every nn.Module, as TensorBoard's profiler plugin shows it. Definitions: docs/analyses/tb-module.md.
#include "analyses/tb_module/tb_module.h"

#include <algorithm>
#include <map>

#include "analyses/analysis.h"
#include "analyses/tb_module/msprof_module_statistic.h"
#include "base/error_words.h"
#include "base/parallel.h"
#include "base/text.h"

namespace stageline {
namespace {

// limit, because a path of a hundred thousand names would be written a hundred thousand times.
constexpr int kMaxPathNames = 64;

// Returns a path such as "Net_0/Linear_1".
std::string path_of(const ModuleAnswer& answer, size_t node) {
  if (answer.lightning) return answer.nodes[node].name;
  std::vector<std::string_view> names;
  int32_t at = static_cast<int32_t>(node);
  for (; at >= 0 && names.size() < kMaxPathNames; at = answer.nodes[at].parent) names.push_back(answer.nodes[at].name);
  std::string path = at >= 0 ? "…" : "";
  for (size_t k = names.size(); k-- > 0;) append_item(path, names[k], "/");
  return path;
}

void append_sums(std::vector<Table::Value>& row, const ModuleSums& s) {
  const int64_t calls = std::max<int64_t>(1, s.occurrences);
  for (const int64_t value : {s.occurrences, s.operators, s.host_ns, s.self_host_ns, s.device_ns, s.self_device_ns,
                              (s.device_ns > 0 ? s.device_ns : s.host_ns) / calls, s.backward_host_ns,
                              s.self_backward_host_ns, s.backward_device_ns, s.self_backward_device_ns})
    row.emplace_back(value);
}

Table tree_table(const std::vector<ModuleAnswer>& ranks) {
  Table table(declared_table("tb-module/modules"));
  for (const ModuleAnswer& answer : ranks)
    for (size_t i = 0; i < answer.nodes.size(); ++i) {
      const ModuleNode& node = answer.nodes[i];
      std::vector<Table::Value> row = {int64_t{answer.rank}, int64_t{node.depth}, path_of(answer, i), node.name,
                                       node.module_id < 0 ? kNullInteger : node.module_id};
      append_sums(row, node.sums);
      table.add_row(std::move(row));
    }
  return table;
}

// Sums modules wherever they are called. When a module is called within a call of itself, its time is counted once.
Table flat_table(const std::vector<ModuleAnswer>& ranks) {
  Table table(declared_table("tb-module/module-totals"));
  for (const ModuleAnswer& answer : ranks) {
    using Key = std::pair<std::string_view, int64_t>;
    std::map<Key, std::pair<ModuleSums, int>> by_module;  // the second number counts its open calls
    std::vector<std::pair<const ModuleNode*, Key>> open;
    for (const ModuleNode& node : answer.nodes) {
      while (std::ssize(open) > node.depth) {
        --by_module[open.back().second].second;
        open.pop_back();
      }
      const Key key{node.name, node.module_id};
      auto& [sums, count] = by_module[key];
      ModuleSums added = node.sums;
      if (count > 0) added.host_ns = added.device_ns = added.backward_host_ns = added.backward_device_ns = 0;
      sums.add(added);
      ++count;
      open.emplace_back(&node, key);
    }
    std::vector<std::pair<Key, const ModuleSums*>> rows;
    for (const auto& [key, entry] : by_module) rows.emplace_back(key, &entry.first);
    const auto self = [](const ModuleSums& s) { return s.self_device_ns + s.self_backward_device_ns; };
    const auto host = [](const ModuleSums& s) { return s.self_host_ns + s.self_backward_host_ns; };
    std::ranges::stable_sort(rows, [&](const auto& a, const auto& b) {
      const int64_t x = self(*a.second), y = self(*b.second);
      return x != y ? x > y : host(*a.second) > host(*b.second);
    });
    for (const auto& [key, sums] : rows) {
      std::vector<Table::Value> row = {int64_t{answer.rank}, std::string(key.first),
                                       key.second < 0 ? kNullInteger : key.second};
      append_sums(row, *sums);
      table.add_row(std::move(row));
    }
  }
  return table;
}

Result<AnalysisResult> run_tb_module(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {false, true}));
  if (input.msprof) return AnalysisResult{}.with(msprof_module_statistic(*torch));
  std::vector<ModuleAnswer> ranks(torch->parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = module_answer(*torch, torch->parts[k]); });
  if (std::ranges::all_of(ranks, [](const ModuleAnswer& a) { return a.nodes.empty(); })) {
    if (input.for_report) return AnalysisResult{};  // nothing was asked: no flaw
    return worded_error(ErrorCode::kNotFound, "refused.not_recorded:modules", {}, {},
                        "torch.profiler records them with with_stack=True (or with_modules=True for TorchScript only)");
  }
  AnalysisResult result;
  return result.with(tree_table(ranks), flat_table(ranks));
}

}  // namespace

extern const Analysis tb_module_analysis = {.run = run_tb_module, .needs = AnalysisNeeds::kTorch, .compat = "msprof"};

}  // namespace stageline
