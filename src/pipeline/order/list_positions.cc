#include "pipeline/order/list_positions.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace stageline {

std::vector<int32_t> list_positions(const RankLists& lists, size_t parts) {
  std::vector<int32_t> position(parts, kUnknown);
  std::vector<std::tuple<int32_t, int32_t, int32_t>> order;  // (part, replica, stage)
  for (const RankList& list : lists.lists)
    if (position[list.part] == kUnknown) {
      position[list.part] = 0;
      order.emplace_back(list.part, list.dp, list.stage);
    }
  std::ranges::sort(order);
  std::map<std::pair<int32_t, int32_t>, int32_t> seen;
  for (const auto& [part, dp, stage] : order) position[part] = seen[{dp, stage}]++;
  return position;
}

}  // namespace stageline
