#include "model/machines.h"

#include <algorithm>
#include <map>
#include <utility>

namespace stageline {

LinkMachines link_machines(const Trace& trace, int32_t stage, int32_t other_stage) {
  std::map<int32_t, std::pair<int32_t, int32_t>> machines;  // for each replica those of both stages
  for (const Part& part : trace.parts) {
    if (part.stage != stage && part.stage != other_stage) continue;
    auto& [one, other] = machines.try_emplace(part.dp, kUnknown, kUnknown).first->second;
    (part.stage == stage ? one : other) = part.machine;
  }
  bool known = !machines.empty();
  for (const auto& [replica, both] : machines) {
    const bool own = both.first != kUnknown && both.second != kUnknown;
    if (own && both.first != both.second) return LinkMachines::kSeveral;
    known = known && own;
  }
  return known ? LinkMachines::kSame : LinkMachines::kUndecided;
}

bool of_hosts_alone(const Trace& trace) {
  bool facts = false;
  for (const Part& part : trace.parts) {
    facts |= !part.slices.category_id.empty();
    if (std::ranges::any_of(part.lanes, [](const Lane& lane) { return lane.kind == LaneKind::kDeviceStream; }))
      return false;
  }
  return facts;
}

}  // namespace stageline
