#include "analyses/tensorboard/tb_operators.h"

namespace stageline {
namespace {

struct CallFacts {  // by event, beside what the event says
  int64_t device_ns = 0, self_device_ns = 0, tensor_ns = 0, self_tensor_ns = 0, self_kernel_ns = 0, unknown_ns = 0;
  bool eligible = false, eligible_below = false;
};

// The plugin's rows: operators, without what it shows elsewhere.
bool is_listed(std::string_view name) {
  return !name.starts_with("Optimizer.") && name != "DataParallel.forward" && name != "DistributedDataParallel.forward";
}

}  // namespace

TbOperators tb_operators(const TbRun& run, const FunctionNames& names, const TorchRank& rank) {
  const Part& part = *rank.part;
  const Slices& s = part.slices;
  const FunctionEvents tree = function_events(*run.torch.trace, part, names, {.python_frames = false});
  std::vector<CallFacts> facts(tree.events.size());
  TbOperators out;
  for (const TorchRow& row : rank.rows) {
    const TbEvent event = run.event(rank, row);
    if (event != TbEvent::kKernel && event != TbEvent::kMemcpy && event != TbEvent::kMemset) continue;
    if (event == TbEvent::kKernel) out.kernel_ns += row.dur_ns;
    const uint32_t owner = s.parent[row.slice];
    if (owner == kNoSliceIndex || tree.event_of_slice[owner] < 0) continue;
    if (run.plugin && row.partner < 0) continue;  // it finds operators through the launch only
    CallFacts& call = facts[static_cast<size_t>(tree.event_of_slice[owner])];
    call.self_device_ns += row.dur_ns;
    if (event == TbEvent::kKernel) call.self_kernel_ns += row.dur_ns;
    if (run.is(row.name, TbRun::kTensorCore)) call.self_tensor_ns += row.dur_ns;
  }
  const auto event_of = [&](const FunctionEvent& e) {
    return e.slice == kNoSliceIndex || e.on_device ? TbEvent::kNone : run.category_event[s.category_id[e.slice]];
  };
  for (size_t i = tree.events.size(); i-- > 0;) {  // callees before callers
    const FunctionEvent& e = tree.events[i];
    CallFacts& own = facts[i];
    const bool op = event_of(e) == TbEvent::kOperator;
    own.device_ns += own.self_device_ns;
    own.tensor_ns += own.self_tensor_ns;
    own.eligible |= (op && run.is(e.name, TbRun::kTensorOperator)) || own.self_tensor_ns > 0;
    if (run.plugin && !op) own.eligible = false;  // it looks for operators right below operators
    if (e.parent == FunctionEvent::kNone) continue;
    CallFacts& caller = facts[static_cast<size_t>(e.parent)];
    caller.device_ns += own.device_ns;
    caller.tensor_ns += own.tensor_ns;
    caller.eligible |= own.eligible;
    caller.eligible_below |= own.eligible || own.eligible_below;
    // Calls of categories that the plugin does not know (driver calls) are time of the operator itself.
    if (run.plugin && event_of(e) == TbEvent::kNone && !e.on_device) caller.unknown_ns += e.host_ns();
  }
  for (size_t i = 0; i < tree.events.size(); ++i) {
    const FunctionEvent& e = tree.events[i];
    if (event_of(e) != TbEvent::kOperator || run.is(e.name, TbRun::kDataLoader) || run.step_number[e.name] >= 0 ||
        !is_listed(run.torch.trace->names.text(e.name)))
      continue;
    const CallFacts& f = facts[i];
    out.calls.push_back({e.name, e.slice, e.host_ns(), e.self_host_ns + f.unknown_ns, f.device_ns, f.self_device_ns,
                         f.tensor_ns, f.self_tensor_ns, f.self_kernel_ns, f.eligible, f.eligible && !f.eligible_below});
  }
  return out;
}

double tb_eligible_share(const TbRun& run, const TbOperators& operators) {
  int64_t eligible = 0, all = 0;
  for (const TbOperator& call : operators.calls) {
    all += call.self_kernel_ns;
    if (call.bottom_eligible) eligible += call.self_kernel_ns;
  }
  if (!run.plugin) all = operators.kernel_ns;
  return all > 0 ? static_cast<double>(eligible) / static_cast<double>(all) : 0;
}

}  // namespace stageline
