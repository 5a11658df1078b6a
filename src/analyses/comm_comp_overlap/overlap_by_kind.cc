#include "analyses/comm_comp_overlap/overlap_by_kind.h"

#include <algorithm>
#include <map>

#include "model/intervals.h"
#include "model/statistics.h"
#include "profile/device_steps.h"

namespace stageline {
namespace {

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

}  // namespace

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

}  // namespace stageline
