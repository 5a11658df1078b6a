#include "analyses/tensorboard/tb_plugin_waits.h"

#include <algorithm>
#include <unordered_map>

#include "analyses/tensorboard/tb_collectives.h"

namespace stageline {
namespace {

bool before(const PluginCall& a, const PluginCall& b) {
  if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
  return a.end_ns != b.end_ns ? a.end_ns > b.end_ns : a.index < b.index;
}

// The plugin finds calls by external id. The annotation that the device shows for a call has the same id, so it
// replaces the call. Ids of annotations are not kept here. Instead the n-th device row of a name replaces the n-th
// call, when there are equally many.
void replace_by_device_rows(std::vector<PluginCall>& calls, std::vector<PluginCall> device) {
  if (device.empty()) return;
  std::unordered_map<StringId, std::vector<size_t>> host_of, device_of;
  for (size_t i = 0; i < calls.size(); ++i) host_of[calls[i].name].push_back(i);
  for (size_t i = 0; i < device.size(); ++i) device_of[device[i].name].push_back(i);
  for (const auto& [name, rows] : device_of) {
    const auto host = host_of.find(name);
    if (host == host_of.end() || host->second.size() != rows.size()) continue;
    for (size_t i = 0; i < rows.size(); ++i) {
      PluginCall& call = calls[host->second[i]];
      call.start_ns = device[rows[i]].start_ns;
      call.end_ns = device[rows[i]].end_ns;
      call.bytes = device[rows[i]].bytes;
      call.ranges = {{call.start_ns, call.end_ns}};
    }
  }
}

// Assigns steps in order. A call that is in no step only stays without a step itself; but once all steps are over, no
// later call gets one.
void find_steps(const TbRank& rank, std::vector<PluginCall>& calls) {
  size_t s = 0;
  for (PluginCall& call : calls) {
    while (s < rank.steps.size() && call.start_ns >= rank.steps[s].end_ns &&
           !(call.start_ns >= rank.steps[s].start_ns && call.end_ns <= rank.steps[s].end_ns))
      ++s;
    if (s == rank.steps.size()) return;
    if (call.start_ns >= rank.steps[s].start_ns && call.end_ns <= rank.steps[s].end_ns)
      call.step = static_cast<int32_t>(s);
  }
}

}  // namespace

PluginCalls plugin_calls(const TbRun& run, const TbRank& rank) {
  PluginCalls out;
  const Part& part = *rank.rank.part;
  const StringPool& names = run.torch.trace->names;
  std::vector<PluginCall> device;
  std::unordered_map<uint32_t, size_t> call_of_slice;
  std::vector<PluginCall> host;
  std::vector<uint32_t> slices;
  for (const TorchRow& row : rank.rank.rows) {
    const TbEvent event = run.event(rank.rank, row);
    if (event != TbEvent::kOperator && event != TbEvent::kAnnotation && event != TbEvent::kPython) continue;
    if (!run.is(row.name, TbRun::kNccl | TbRun::kGloo)) continue;
    out.nccl |= run.is(row.name, TbRun::kNccl);
    out.gloo |= run.is(row.name, TbRun::kGloo);
    PluginCall call;
    call.start_ns = row.start_ns;
    call.end_ns = row.end_ns();
    call.index = row.index;
    call.name = row.name;
    call.ranges.push_back({call.start_ns, call.end_ns});
    if (const InputFact* input = fact_of(part.inputs, row.slice))
      call.bytes = input_bytes(names.text(input->dims), names.text(input->types));
    if (row.category == Category::kGpuAnnotation) {
      device.push_back(std::move(call));
    } else {
      call_of_slice.emplace(row.slice, host.size());
      host.push_back(std::move(call));
    }
  }
  if (out.nccl)
    for (const TorchRow& row : rank.rank.rows) {
      if (!run.is_kernel(rank.rank, row)) continue;
      const auto call = call_of_slice.find(part.slices.parent[row.slice]);
      if (call != call_of_slice.end()) host[call->second].ranges.push_back({row.start_ns, row.end_ns()});
    }
  std::sort(host.begin(), host.end(), before);
  std::sort(device.begin(), device.end(), before);
  replace_by_device_rows(host, std::move(device));
  std::sort(host.begin(), host.end(), before);
  for (PluginCall& call : host)
    std::stable_sort(call.ranges.begin(), call.ranges.end(), [](const Interval& a, const Interval& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    });
  find_steps(rank, host);
  out.calls = std::move(host);
  return out;
}

Status split_plugin_calls(const TbRun& run, std::vector<PluginCalls>& ranks) {
  const auto none = [&](const std::string& what, size_t rank) {
    return Error{ErrorCode::kBadInput,
                 "no distributed view: " + what,
                 {},
                 "the plugin shows none here (rank " + std::to_string(run.torch.ranks[run.torch.parts[rank]]) +
                     "); without --compat tb the rest is shown"};
  };
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].nccl && ranks[r].gloo) return none("calls of both nccl and gloo", r);
    if (ranks[r].calls.empty()) return none("a rank without nccl: or gloo: calls that it knows", r);
    if (ranks[r].calls.size() != ranks[0].calls.size()) return none("ranks differ in the number of calls", r);
  }
  for (size_t i = 0; !ranks.empty() && i < ranks[0].calls.size(); ++i) {
    std::vector<int64_t> shortest(ranks[0].calls[i].ranges.size(), INT64_MAX);
    for (size_t r = 0; r < ranks.size(); ++r) {
      const std::vector<Interval>& ranges = ranks[r].calls[i].ranges;
      if (ranges.size() != shortest.size()) return none("ranks differ in the number of kernels of a call", r);
      for (size_t k = 0; k < ranges.size(); ++k) shortest[k] = std::min(shortest[k], ranges[k].end - ranges[k].start);
    }
    for (PluginCalls& rank : ranks)
      for (size_t k = 0; k < shortest.size(); ++k) {
        const int64_t end = rank.calls[i].ranges[k].end;
        rank.calls[i].transfer.push_back({end - shortest[k], end});
      }
  }
  return {};
}

}  // namespace stageline
