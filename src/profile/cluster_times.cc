#include "profile/cluster_times.h"

namespace stageline {
namespace {

void finish(ClusterStep& t) {
  std::vector<Interval> all = t.compute;
  t.compute = union_of(std::move(t.compute));
  for (const auto* list : {&t.communication, &t.memory}) all.insert(all.end(), list->begin(), list->end());
  all = union_of(std::move(all));
  t.communication = union_of(std::move(t.communication));
  t.memory = union_of(std::move(t.memory));
  t.messages = union_of(std::move(t.messages));
  t.compute_ns = length_of(t.compute);
  t.communication_ns = length_of(t.communication);
  t.overlap_ns = shared_length(t.communication, t.compute);
  t.exposed_ns = t.communication_ns - t.overlap_ns;
  t.memory_ns = length_of(t.memory);
  t.exposed_memory_ns = length_of(without(without(t.memory, t.compute), t.communication));
  t.bubble_ns = length_of(without(t.messages, t.compute));
  t.free_ns = t.span_ns() - length_of(all);
  for (auto* list : {&t.compute, &t.communication, &t.memory, &t.messages}) *list = {};
}

}  // namespace

ClusterTimes cluster_times(const TorchRun& run, const TorchRank& rank, const std::vector<CommunicationOp>& ops) {
  ClusterTimes steps;
  for (const TorchRow& row : rank.rows) {
    if (!row.on_device) continue;
    ClusterStep& t = steps[row.iteration];
    t.work.add(row.start_ns, row.end_ns());
    const Interval i{row.start_ns, row.end_ns()};
    if (row.kernel == KernelClass::kComputation) t.compute.push_back(i);
    else if (row.kernel == KernelClass::kCommunication) t.communication.push_back(i);
    else t.memory.push_back(i);
  }
  for (const CommunicationOp& op : ops) {
    ClusterStep& t = steps[op.step];
    if (op.messages) t.messages.push_back({op.start_ns, op.end_ns()});
  }
  for (const OpTime& time : op_times(run, ops, *rank.part, false)) {
    if (time.op.messages) continue;
    ClusterStep& t = steps[time.op.step];
    ++t.collectives;
    t.known += time.basis != Basis::kNone ? 1 : 0;
    t.wait_ns = sum_or_limit(t.wait_ns, time.wait_ns);
    t.transfer_ns = sum_or_limit(t.transfer_ns, time.transit_ns);
  }
  for (const ProfilerStep& step : rank.part->steps) {
    const auto it = steps.find(static_cast<int32_t>(std::clamp<int64_t>(step.number, INT32_MIN, INT32_MAX)));
    if (it == steps.end()) continue;
    it->second.step_ns = step.end_ns - step.start_ns;
    it->second.host_start = step.start_ns - run.zero_ns;
  }
  for (auto& [number, t] : steps) finish(t);
  return steps;
}

ClusterSum cluster_sum(const ClusterTimes& times) {
  ClusterSum sum;
  const bool has_steps = !times.empty() && times.rbegin()->first >= 0;
  for (const auto& [step, t] : times) {
    // Work outside of steps may start before the first and end after the last one, so its span holds theirs.
    if (step < 0 && has_steps) continue;
    sum.steps += step >= 0 ? 1 : 0;
    sum.span_ns += t.span_ns();
    sum.compute_ns += t.compute_ns;
    const int64_t messages = std::min(t.bubble_ns, t.exposed_ns);
    sum.exposed_message_ns += messages;
    sum.exposed_collective_ns += t.exposed_ns - messages;
    sum.exposed_memory_ns += t.exposed_memory_ns;
    sum.free_ns += t.free_ns;
    sum.wait_ns = sum_or_limit(sum.wait_ns, t.wait_ns);
    sum.waits_known &= t.waits_known();
  }
  return sum;
}

}  // namespace stageline
