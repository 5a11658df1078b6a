#include "pipeline/cells/loose_messages.h"

#include <algorithm>

namespace stageline {
namespace {

// The maximum distance of the operators of a kernel's messages before its launch, in slices.
constexpr uint32_t kFarthestBefore = 256;
// The maximum number of operators that are searched above a kernel: c10d::send, record_param_comms, nccl:coalesced …
constexpr int kFarthestOwner = 8;

// Returns the arguments of the collective: the kernel's own, else those of an operator around its launch.
const CollectiveFact* collective_of(const Part& part, uint32_t kernel) {
  const Slices& s = part.slices;
  if (const CollectiveFact* own = fact_of(part.collectives, kernel)) return own;
  uint32_t at = s.parent[kernel] != kNoSliceIndex ? s.parent[kernel] : s.partner[kernel];
  for (int up = 0; up < kFarthestOwner && at != kNoSliceIndex; ++up, at = s.parent[at])
    if (const CollectiveFact* fact = fact_of(part.collectives, at)) return fact;
  return nullptr;
}

int32_t stage_of_rank(const Trace& trace, int64_t rank) {
  const auto at = std::ranges::lower_bound(trace.parts, rank, {}, &Part::rank);
  return at != trace.parts.end() && at->rank == rank ? at->stage : kUnknown;
}

MessageKind kind_of(const Trace& trace, const Part& part, const CollectiveFact* fact, std::string_view name,
                    const CellMark* around, int32_t chunks) {
  const bool send = fact != nullptr && name == "send";
  const bool receive = fact != nullptr && (name == "recv" || name == "receive");  // HCCL's word is the second
  if (!send && !receive) {
    // SendRecv kernels also run all-to-all, so without arguments a kernel of this name may be either.
    const bool either = name == "batchSendRecv" || (fact == nullptr && name.find("SendRecv") != std::string_view::npos);
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
  if (wraps && trace.pipeline_stages == 2) return {};  // the next stage is also the previous one
  const bool to_later = wraps ? peer < part.stage : peer > part.stage;
  return directed(send == to_later);
}

// Returns sends and receives that were batched (batch_isend_irecv). Their operators stand right before the
// "nccl:coalesced" that launched one kernel for all of them.
std::vector<const CollectiveFact*> coalesced(const Trace& trace, const Part& part, uint32_t kernel) {
  const Slices& s = part.slices;
  uint32_t at = s.parent[kernel] != kNoSliceIndex ? s.parent[kernel] : s.partner[kernel];
  for (int up = 0; up < kFarthestOwner && at != kNoSliceIndex; ++up, at = s.parent[at])
    if (trace.names.text(s.name_id[at]).ends_with(":coalesced")) break;
  std::vector<const CollectiveFact*> found;
  if (at == kNoSliceIndex || !trace.names.text(s.name_id[at]).ends_with(":coalesced")) return found;
  const auto lane = std::ranges::upper_bound(part.lanes, at, {}, &Lane::begin);
  const auto begin = static_cast<uint32_t>((lane - 1)->begin);
  for (uint32_t i = at; i-- > begin && at - i <= kFarthestBefore;) {
    const std::string_view name = trace.names.text(s.name_id[i]);
    if (!name.starts_with("c10d::") && !name.starts_with("nccl:") && name != "record_param_comms") break;
    if (name.ends_with(":coalesced")) break;
    const CollectiveFact* fact = fact_of(part.collectives, i);
    if (fact == nullptr) continue;
    const std::string_view what = trace.names.text(fact->name);
    if (what == "send" || what == "recv") found.push_back(fact);
  }
  std::ranges::reverse(found);
  return found;
}

}  // namespace

std::vector<MessageKind> message_kinds(const Trace& trace, size_t part_index, uint32_t kernel, const CellMark* around,
                                       int32_t chunks) {
  const Part& part = trace.parts[part_index];
  const CollectiveFact* fact = collective_of(part, kernel);
  const std::string_view name = trace.names.text(fact != nullptr ? fact->name : part.slices.name_id[kernel]);
  std::vector<MessageKind> kinds;
  if (fact == nullptr || name == "coalesced")
    for (const CollectiveFact* one : coalesced(trace, part, kernel)) {
      // Messages of both directions may share the kernel, so the peer is asked first and the work around it second.
      MessageKind kind = kind_of(trace, part, one, trace.names.text(one->name), nullptr, chunks);
      if (!kind.known) kind = kind_of(trace, part, one, trace.names.text(one->name), around, chunks);
      const auto same = [&](const MessageKind& k) { return k.kind == kind.kind; };
      if (kind.known && std::ranges::none_of(kinds, same)) kinds.push_back(kind);
    }
  if (kinds.empty()) kinds.push_back(kind_of(trace, part, fact, name, around, chunks));
  return kinds;
}

}  // namespace stageline
