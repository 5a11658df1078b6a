#include "engine/schedule_list.h"

#include "schedules/registry.h"

namespace stageline {

std::vector<ScheduleOffer> schedule_list() {
  std::vector<ScheduleOffer> list;
  for (const ScheduleDef* def : schedules()) list.push_back({def->name, def->default_chunks});
  return list;
}

bool knows_schedule(std::string_view name) { return find_schedule(name) != nullptr; }

}  // namespace stageline
