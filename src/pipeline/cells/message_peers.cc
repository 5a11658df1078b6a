#include "base/json_members.h"
#include "pipeline/cells/host_work.h"

namespace stageline {
namespace {

constexpr size_t kMaxArguments = 16;
constexpr uint32_t kMaxInside = 16;  // how many slices inside a send operator are looked at

int64_t key_of(int32_t replica, int64_t stage) { return static_cast<int64_t>(replica) << 32 | (stage & 0xffffffff); }

// Returns the receiver in a label: "nccl:send 0->1" → 1.
std::optional<int64_t> member_of_label(std::string_view name) {
  const size_t send = name.find(":send "), arrow = name.rfind("->");
  if (send == std::string_view::npos || arrow == std::string_view::npos || arrow < send) return std::nullopt;
  return json_integer(name.substr(arrow + 2));
}

}  // namespace

MessagePeers::MessagePeers(const Trace& trace) : trace_(trace), layout_(layout_from_groups(trace)) {
  for (uint32_t p = 0; p < trace.parts.size(); ++p) {
    part_of_rank_.emplace(trace.parts[p].rank, static_cast<int32_t>(p));
    if (layout_.stages == 0) continue;
    const auto [at, added] = part_of_place_.emplace(key_of(layout_.dp[p], layout_.stage[p]), static_cast<int32_t>(p));
    if (!added) at->second = kNoPeer;
  }
}

int32_t MessagePeers::part_of_member(size_t part, int64_t member) const {
  const auto& table = layout_.stages > 0 ? part_of_place_ : part_of_rank_;
  return value_at(table, layout_.stages > 0 ? key_of(layout_.dp[part], member) : member, kAbsentPeer);
}

int32_t MessagePeers::to_part(size_t part, uint32_t lane, uint32_t slice) const {
  const Part& p = trace_.parts[part];
  const Slices& slices = p.slices;
  const int64_t end = slices.end_ns(slice);
  uint32_t last = slice;  // slices inside the operator follow it in its lane
  while (last - slice < kMaxInside && last + 1 < p.lanes[lane].end && slices.end_ns(last + 1) <= end) ++last;
  auto fact = std::ranges::lower_bound(p.collectives, slice, {}, &CollectiveFact::slice);
  if (fact != p.collectives.end() && fact->slice <= last && fact->dst_rank >= 0)
    return value_at(part_of_rank_, fact->dst_rank, kAbsentPeer);
  if (const InputFact* input = fact_of(p.inputs, slice); input != nullptr && input->concrete != 0) {
    const auto values = json_members(trace_.names.text(input->concrete), kMaxArguments);
    if (values.size() > 2)  // the arguments are tensors, group, peer, tag
      if (const auto member = json_integer(values[2].value)) return part_of_member(part, *member);
  }
  for (uint32_t i = slice + 1; i <= last; ++i)
    if (const auto member = member_of_label(trace_.names.text(slices.name_id[i]))) return part_of_member(part, *member);
  return kNoPeer;
}

}  // namespace stageline
