// Finds how much of the communication runs during computation. Definitions: docs/analyses/comm-comp-overlap.md.
#include "analyses/analysis.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "profile/communication_ops.h"
#include "profile/device_time.h"

namespace stageline {
namespace {

using KindRows = std::vector<std::vector<Table::Value>>;  // of one rank

struct Overlap {
  int64_t communication_ns = 0, hidden_ns = 0;
  int64_t exposed_ns() const { return communication_ns - hidden_ns; }
};
Overlap overlap_of(std::vector<Interval> communication, const std::vector<Interval>& compute) {
  communication = union_of(std::move(communication));
  return {length_of(communication), shared_length(communication, compute)};
}

std::vector<Interval> computing(const TorchRank& rank) {
  std::vector<Interval> out;
  for (const TorchRow& row : rank.rows)
    if (row.on_device && row.kernel == KernelClass::kComputation) out.push_back({row.start_ns, row.end_ns()});
  return union_of(std::move(out));
}

std::vector<Interval> touching(const std::vector<Interval>& all, int64_t start_ns, int64_t end_ns) {
  std::vector<Interval> out;
  std::ranges::copy_if(all, std::back_inserter(out),
                       [&](const Interval& at) { return at.start < end_ns && at.end > start_ns; });
  return out;
}

// Returns the rows of comm-comp-overlap-by-kind: one for each step and description of a group; none where no group has
// a description. O(n log n) in the rows.
KindRows overlap_by_kind(const TorchRun& run, const TorchRank& rank, const OpNames& op_names) {
  std::map<std::pair<int32_t, std::string_view>, std::vector<Interval>> kinds;
  bool described = false;
  for (const CommunicationOp& op : communication_ops(rank, 0, op_names)) {
    kinds[{op.step, run.trace->names.text(op.description)}].push_back({op.start_ns, op.end_ns()});
    described |= op.description != 0;
  }
  if (!described) return {};
  std::map<int64_t, int64_t> length;
  for (const DeviceStep& step : device_steps(run, rank.part - run.trace->parts.data()))
    length[step.number] = step.length_ns;
  const std::vector<Interval> compute = computing(rank);
  KindRows rows;
  for (auto& [key, work] : kinds) {
    const auto& [step, kind] = key;
    const Overlap o = overlap_of(std::move(work), compute);
    const auto at = length.find(step);
    rows.push_back({int64_t{rank.rank}, step < 0 ? kNullInteger : int64_t{step}, std::string(kind), o.communication_ns,
                    o.hidden_ns, o.exposed_ns(), share_of(o.exposed_ns(), at == length.end() ? 0 : at->second)});
  }
  return rows;
}

// Returns the rows of ComputationalOperatorMaskingLinearity (msprof-analyze's computational_op_masking). Each set of
// kinds ("dp,edp") has a row for each step in whose host window it communicates. Work that touches a window counts
// whole.
KindRows msprof_masking(const TorchRun& run, const TorchRank& rank, const OpNames& op_names,
                        const std::vector<std::vector<std::string>>& sets) {
  std::map<std::string_view, std::vector<Interval>> kinds;
  for (const CommunicationOp& op : communication_ops(rank, 0, op_names))
    kinds[run.trace->names.text(op.description)].push_back({op.start_ns + run.zero_ns, op.end_ns() + run.zero_ns});
  std::vector<Interval> tasks;
  for (const TorchRow& row : rank.rows)
    if (row.on_device && fact_of(rank.part->tasks, row.slice))
      tasks.push_back({row.start_ns + run.zero_ns, row.end_ns() + run.zero_ns});
  KindRows rows;
  for (const ProfilerStep& step : rank.part->steps)
    for (const std::vector<std::string>& set : sets) {
      std::vector<Interval> work;
      std::string name;
      for (const std::string& kind : set) {
        name += (name.empty() ? "" : "+") + kind;
        const auto at = kinds.find(kind);
        if (at == kinds.end()) continue;
        std::ranges::copy(touching(at->second, step.start_ns, step.end_ns), std::back_inserter(work));
      }
      if (work.empty()) continue;
      const auto compute = union_of(touching(tasks, step.start_ns, step.end_ns));
      const Overlap o = overlap_of(std::move(work), compute);
      const int64_t length = step.end_ns - step.start_ns;
      rows.push_back({step.number, name, step.start_ns, step.end_ns, o.communication_ns,
                      share_of(o.communication_ns, length), o.exposed_ns(),
                      round_to(share_of(o.exposed_ns(), length), 5)});
    }
  return rows;
}

Table hta_comm_comp_overlap_table(const std::vector<DeviceTime>& ranks) {
  Table table(declared_table("comm-comp-overlap/comm-comp-overlap/hta"));
  for (const DeviceTime& o : ranks)
    table.add_row({int64_t{o.rank}, round_to(100 * share_of(o.overlap_ns, o.communication_ns), 2)});
  return table;
}

Table exact_comm_comp_overlap_table(const std::vector<DeviceTime>& ranks) {
  Table table(declared_table("comm-comp-overlap/comm-comp-overlap"));
  for (const DeviceTime& o : ranks)
    if (o.any)
      table.add_row({int64_t{o.rank}, o.communication_ns, o.compute_ns, o.overlap_ns, o.exposed_communication_ns(),
                     share_of(o.overlap_ns, o.communication_ns)});
  return table;
}

// Reads "dp,edp;tp": sets of kinds. msprof-analyze's own by default.
std::vector<std::vector<std::string>> kind_sets(const AnalysisOptions& options) {
  std::vector<std::vector<std::string>> sets;
  const std::string all = options.text("kinds", "dp,edp;edp;dp;ep;pp;mp;tp");
  for (const std::string_view set : split(all, ';')) {
    sets.emplace_back();
    for (const std::string_view kind : split(set, ',')) sets.back().emplace_back(trim(kind));
  }
  return sets;
}

Table kinds_table(std::string_view variant, const std::vector<KindRows>& ranks) {
  Table table(declared_table("comm-comp-overlap/comm-comp-overlap-by-kind", variant));
  for (const KindRows& rows : ranks)
    for (const std::vector<Table::Value>& row : rows) table.add_row(row);
  return table;
}

Result<AnalysisResult> run_msprof_masking(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  const OpNames op_names(torch->trace->names);
  const auto sets = kind_sets(input.options);
  AnalysisResult result;
  return result.with(kinds_table("msprof", ask_ranks(*torch, [&](const TorchRank& rank) {
                                   return msprof_masking(*torch, rank, op_names, sets);
                                 })));
}

}  // namespace

Result<AnalysisResult> run_comm_comp_overlap(const AnalysisInput& input) {
  if (input.msprof) return run_msprof_masking(input);
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  std::optional<OpNames> op_names;
  if (!input.hta) op_names.emplace(torch->trace->names);
  std::vector<KindRows> kinds(torch->parts.size());
  std::vector<DeviceTime> ranks(kinds.size());
  parallel_for(ranks.size(), [&](size_t k) {
    const auto rank = torch_rank(*torch, torch->parts[k]);
    ranks[k] = device_time(*torch, *rank);
    if (op_names) kinds[k] = overlap_by_kind(*torch, *rank, *op_names);
  });
  AnalysisResult result = answer_of(*torch);
  result.tables.push_back(input.hta ? hta_comm_comp_overlap_table(ranks) : exact_comm_comp_overlap_table(ranks));
  if (!input.hta) result.tables.push_back(kinds_table("", kinds));
  return result;
}

}  // namespace stageline
