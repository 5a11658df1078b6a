#include "schedules/registry.h"

#include "base/text.h"

namespace stageline {

#define SCHEDULE(id) extern const ScheduleDef id##_schedule;
#include "schedules/schedules.def"
#undef SCHEDULE

const std::vector<const ScheduleDef*>& schedules() {
  static const std::vector<const ScheduleDef*> all = {
#define SCHEDULE(id) &id##_schedule,
#include "schedules/schedules.def"
#undef SCHEDULE
  };
  return all;
}

const ScheduleDef* find_schedule(std::string_view name) {
  for (const ScheduleDef* schedule : schedules())
    if (schedule->name == dashed(name)) return schedule;
  return nullptr;
}

}  // namespace stageline
