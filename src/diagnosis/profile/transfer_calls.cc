#include "diagnosis/profile/transfer_calls.h"

#include "model/statistics.h"
#include "model/torch_facts.h"
#include "profile/slow_groups.h"

namespace stageline {
namespace {

constexpr double kMinSpan = 4;  // sizes from which a latency is read are this many times apart

// The latency by the times of the smallest and the largest of the calls, where their sizes are far apart; else NCCL's
// own estimate for a message of nothing. It is at most what the shortest call takes.
double latency_of(const LedgerOfRun& run, TransferCalls& calls) {
  std::map<int64_t, std::vector<double>> by_size;
  double shortest = 0;
  for (const LedgerInstance* instance : calls.list) {
    const double took = instance->took_ns;
    by_size[instance->bytes].push_back(took);
    shortest = shortest > 0 ? std::min(shortest, took) : took;
  }
  const double small = by_size.begin()->first, large = by_size.rbegin()->first;
  calls.measured = large >= kMinSpan * small;
  if (calls.measured) {
    const double least = median_of(by_size.begin()->second), most = median_of(by_size.rbegin()->second);
    return std::clamp(least - (most - least) / (large - small) * small, 0.0, shortest);
  }
  TransferRoute route = route_of(run, calls.kind, *calls.group, fabric_of(run));
  route.nic_gbps = 1;  // a message of one byte asks only for latency
  return std::min(expected_or_zero_ns(route, 1), shortest);
}

}  // namespace

std::string kind_text(CollectiveKind kind) { return std::string(collective_kind_name(kind)); }

const Fabric* fabric_of(const LedgerOfRun& run) {
  return fabric_of_device(device_name(run.torch.trace->parts[run.torch.parts[0]]));
}

TransferRoute route_of(const LedgerOfRun& run, CollectiveKind kind, const LedgerGroup& group, const Fabric* fabric) {
  return {kind, group.size, static_cast<int64_t>(machines_of(run.torch, group.members)), fabric};
}

double expected_or_zero_ns(const TransferRoute& route, int64_t bytes) {
  return route.known() && route.fabric->chips != Fabric::Chips::kOther ? expected_ns(route, bytes) : 0;
}

bool is_complete_transfer(const LedgerOfRun& run, const LedgerInstance& instance) {
  return instance.complete && instance.low < 0 && instance.group >= 0 && instance.bytes > 0 &&
         run.ledger.in_steps(instance);
}

std::vector<TransferCalls> transfer_calls(const LedgerOfRun& run) {
  std::map<std::pair<int32_t, CollectiveKind>, TransferCalls> all;
  for (const LedgerInstance& instance : run.ledger.instances) {
    if (!is_complete_transfer(run, instance)) continue;
    TransferCalls& calls = all[{instance.group, instance.kind}];
    calls.kind = instance.kind, calls.group = &run.ledger.groups[instance.group];
    calls.list.push_back(&instance);
  }
  std::vector<TransferCalls> out;
  const auto start = [&](const LedgerInstance* x) { return run.ledger.parts[x->begin].call->start_ns; };
  for (auto& [key, calls] : all) {
    sort_stably(calls.list, {}, start);
    calls.latency_ns = latency_of(run, calls);
    out.push_back(std::move(calls));
  }
  return out;
}

}  // namespace stageline
