#include "profile/tb_operators.h"

#include <algorithm>

namespace stageline {
namespace {

using Visit = std::function<void(const TbOperator&)>;

struct CallFacts {  // for each event or node, besides its own fields
  int64_t device_ns = 0, self_device_ns = 0, tensor_ns = 0, self_tensor_ns = 0, self_kernel_ns = 0;
  bool eligible = false, eligible_below = false;

  void add_work(const TorchRow& row, TbEvent event, bool tensor_cores) {
    self_device_ns += row.dur_ns;
    if (event == TbEvent::kKernel) self_kernel_ns += row.dur_ns;
    if (tensor_cores) self_tensor_ns += row.dur_ns;
  }
};

// Returns true for operators that the plugin's view listed: all but those that it showed elsewhere.
bool is_listed(std::string_view name) {
  return !name.starts_with("Optimizer.") && name != "DataParallel.forward" && name != "DistributedDataParallel.forward";
}

}  // namespace

int64_t for_each_tb_operator(const TbRun& run, const FunctionNames& names, const TorchRank& rank, const Visit& visit) {
  const Part& part = *rank.part;
  const Slices& s = part.slices;
  const FunctionEvents tree = function_events(*run.torch.trace, part, names, {.python_frames = false});
  std::vector<CallFacts> facts(tree.events.size());
  int64_t kernel_ns = 0;
  for (const TorchRow& row : rank.rows) {
    const TbEvent event = run.event(rank, row);
    if (!is_work(event)) continue;
    if (event == TbEvent::kKernel) kernel_ns += row.dur_ns;
    const uint32_t owner = s.parent[row.slice];
    if (owner == kNoSliceIndex || tree.event_of_slice[owner] < 0) continue;
    facts[tree.event_of_slice[owner]].add_work(row, event, run.is(row.name, TbRun::kTensorCore));
  }
  const auto is_op = [&](const FunctionEvent& e) {
    return !e.on_device && e.slice != kNoSliceIndex && e.category == Category::kCpuOp;
  };
  // The name of an operator without its overload may be no name of the trace.
  const auto is = [&](const FunctionEvent& e, uint8_t fact) {
    return e.name < run.name_facts.size() ? run.is(e.name, fact) : (tb_name_facts(names.text(e.name)) & fact) != 0;
  };
  const auto is_step = [&](const FunctionEvent& e) {
    return e.name < run.step_number.size() && run.step_number[e.name] >= 0;
  };
  for (size_t i = tree.events.size(); i-- > 0;) {  // callees before callers
    const FunctionEvent& e = tree.events[i];
    CallFacts& own = facts[i];
    own.device_ns += own.self_device_ns;
    own.tensor_ns += own.self_tensor_ns;
    own.eligible |= (is_op(e) && is(e, TbRun::kTensorOperator)) || own.self_tensor_ns > 0;
    if (e.parent == FunctionEvent::kNone) continue;
    CallFacts& caller = facts[e.parent];
    caller.device_ns += own.device_ns;
    caller.tensor_ns += own.tensor_ns;
    caller.eligible |= own.eligible;
    caller.eligible_below |= own.eligible || own.eligible_below;
  }
  for (size_t i = 0; i < tree.events.size(); ++i) {
    const FunctionEvent& e = tree.events[i];
    if (!is_op(e) || is(e, TbRun::kDataLoader) || is_step(e) || !is_listed(names.text(e.name))) continue;
    const CallFacts& f = facts[i];
    visit({e.name, e.slice, e.host_ns(), e.self_host_ns, f.device_ns, f.self_device_ns, f.tensor_ns, f.self_tensor_ns,
           f.self_kernel_ns, f.eligible, f.eligible && !f.eligible_below});
  }
  return kernel_ns;
}

double tb_eligible_share(const TbRun& run, const FunctionNames& names, const TorchRank& rank) {
  int64_t eligible = 0;
  const int64_t all = for_each_tb_operator(run, names, rank, [&](const TbOperator& call) {
    if (call.bottom_eligible) eligible += call.self_kernel_ns;
  });
  // Kernels whose names say nothing may be those that use the cores: what is left is known not to.
  for (const TorchRow& row : rank.rows)
    if (run.is_kernel(rank, row) && run.is(row.name, TbRun::kSilentKernel)) eligible -= row.dur_ns;
  return all > 0 ? static_cast<double>(std::max<int64_t>(eligible, 0)) / static_cast<double>(all) : 0;
}

}  // namespace stageline
