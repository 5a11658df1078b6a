#include "schedules/registry.h"

#include <string>
#include <utility>

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
  // Maps the classes of torch.distributed.pipelining, with and without "Schedule" before them.
  static constexpr std::pair<std::string_view, std::string_view> kTorch[] = {
      {"GPipe", "fthenb"},       {"Interleaved1F1B", "vpp"},
      {"LoopedBFS", "bfs"},      {"InterleavedZeroBubble", "interleaved-zb"},
      {"ZBVZeroBubble", "zb-v"}, {"DualPipeV", "dualpipe-v"},
  };
  std::string_view torch = name;
  if (torch.starts_with("Schedule")) torch.remove_prefix(8);
  std::string own = torch == "1F1B" ? "1f1b" : dashed(torch);
  for (const auto& [theirs, ours] : kTorch)
    if (torch == theirs) own = ours;
  for (const ScheduleDef* schedule : schedules())
    if (schedule->name == own) return schedule;
  return nullptr;
}

}  // namespace stageline
