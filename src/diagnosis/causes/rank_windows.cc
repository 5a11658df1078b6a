#include "diagnosis/causes/rank_windows.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace stageline {

std::string name_that_fills(const Trace& trace, std::vector<RankWindow> windows) {
  constexpr double kMinFilled = 0.5;  // share of the windows' time
  const Cells& cells = trace.cells;
  std::sort(windows.begin(), windows.end(), [](const RankWindow& a, const RankWindow& b) {
    return std::pair(a.part, a.from_ns) < std::pair(b.part, b.from_ns);
  });
  double all_ns = 0;
  for (const RankWindow& window : windows) all_ns += window.to_ns - window.from_ns;
  std::map<std::string_view, double> filled_ns;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells.kind[i] != CellKind::kOther) continue;
    const int32_t part = cells.part[i];
    auto at = std::partition_point(windows.begin(), windows.end(), [&](const RankWindow& w) {
      return w.part < part || (w.part == part && w.to_ns <= cells.start_ns[i]);
    });
    for (; at != windows.end() && at->part == part && at->from_ns < cells.end_ns[i]; ++at)
      filled_ns[trace.slice_name(cells.at(i))] +=
          std::min(at->to_ns, cells.end_ns[i]) - std::max(at->from_ns, cells.start_ns[i]);
  }
  for (const auto& [name, ns] : filled_ns)
    if (ns >= kMinFilled * all_ns) return std::string(name);
  return {};
}

}  // namespace stageline
