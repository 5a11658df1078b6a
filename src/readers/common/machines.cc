#include "readers/common/machines.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"

namespace stageline {

void number_machines(Trace& trace) {
  std::vector<std::string> names;
  for (const Part& part : trace.parts) {
    if (part.machine_name.empty()) return;
    if (std::ranges::find(names, part.machine_name) == names.end()) names.push_back(part.machine_name);
  }
  std::ranges::sort(names, [](const auto& a, const auto& b) { return natural_less(a, b); });
  for (Part& part : trace.parts)
    part.machine = static_cast<int32_t>(std::ranges::find(names, part.machine_name) - names.begin());
  if (names.size() == 1) trace.clock = ClockState::kShared;
}

}  // namespace stageline
