#include "pipeline/loose_messages.h"

#include <algorithm>

namespace stageline {
namespace {

constexpr int kFarthestOwner = 8;  // operators above a kernel: c10d::send, record_param_comms, nccl:coalesced …

// The collective's arguments: the kernel's own, else those of an operator around its launch.
const CollectiveFact* collective_of(const Part& part, uint32_t kernel) {
  const Slices& s = part.slices;
  if (const CollectiveFact* own = fact_of(part.collectives, kernel)) return own;
  uint32_t at = s.parent[kernel] != kNoSliceIndex ? s.parent[kernel] : s.partner[kernel];
  for (int up = 0; up < kFarthestOwner && at != kNoSliceIndex; ++up, at = s.parent[at])
    if (const CollectiveFact* fact = fact_of(part.collectives, at)) return fact;
  return nullptr;
}

int32_t stage_of_rank(const Trace& trace, int64_t rank) {
  const auto at = std::lower_bound(trace.parts.begin(), trace.parts.end(), rank,
                                   [](const Part& part, int64_t wanted) { return part.rank < wanted; });
  return at != trace.parts.end() && at->rank == rank ? at->stage : kUnknown;
}

}  // namespace

MessageKind message_kind(const Trace& trace, size_t part_index, uint32_t kernel, const CellMark* around,
                         int32_t chunks) {
  const Part& part = trace.parts[part_index];
  const CollectiveFact* fact = collective_of(part, kernel);
  const std::string_view name = trace.names.text(fact != nullptr ? fact->name : part.slices.name_id[kernel]);
  const bool send = fact != nullptr && name == "send", receive = fact != nullptr && name == "recv";
  if (!send && !receive) {
    // All-to-all runs in SendRecv kernels too: without arguments they may be either.
    const bool either = fact == nullptr && name.find("SendRecv") != std::string_view::npos;
    return {CellKind::kCollective, !either && name != "wait" && name != "coalesced"};
  }
  const auto directed = [&](bool forward) {
    return MessageKind{send ? (forward ? CellKind::kSendForward : CellKind::kSendBackward)
                            : (forward ? CellKind::kRecvForward : CellKind::kRecvBackward),
                       true};
  };
  if (around != nullptr && is_compute(around->kind) && around->kind != CellKind::kForwardBackward)
    return directed(around->kind == CellKind::kForward);
  const int32_t peer = stage_of_rank(trace, send ? fact->dst_rank : fact->src_rank);
  if (peer == kUnknown || part.stage == kUnknown || peer == part.stage) return {};
  const bool wraps = chunks > 1 && std::abs(peer - part.stage) == trace.pipeline_stages - 1;
  if (wraps && trace.pipeline_stages == 2) return {};  // the next stage is also the one before
  const bool to_later = wraps ? peer < part.stage : peer > part.stage;
  return directed(send == to_later);
}

}  // namespace stageline
