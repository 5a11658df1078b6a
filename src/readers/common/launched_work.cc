#include "readers/common/launched_work.h"

#include "base/sorting.h"
#include "model/intervals.h"
#include "readers/common/number_map.h"

namespace stageline {

void LaunchedWork::settle() {
  sort_runs(work_.begin(), work_.end(), [](const Work& a, const Work& b) {
    return a.correlation != b.correlation ? a.correlation < b.correlation : a.row < b.row;
  });
  NumberMap first_of;  // correlation → index into work_
  for (size_t i = 0; i < work_.size(); ++i)
    if (work_[i].correlation != kNoCorrelation) first_of.put(work_[i].correlation, static_cast<uint32_t>(i));
  for (Launch& launch : launches_) launch.first = first_of.get(launch.correlation);
  std::erase_if(launches_, [](const Launch& launch) { return launch.first == NumberMap::kNone; });
  sort_runs(launches_.begin(), launches_.end(), [](const Launch& a, const Launch& b) {
    if (a.thread != b.thread) return a.thread < b.thread;
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.correlation < b.correlation;
  });
}

void LaunchedWork::project(PartBuilder& out, size_t kind) {
  struct OnLane {
    Span span;
    int64_t busy_ns = 0;
  };
  // The lanes of one range, of which there are few, in order of first work.
  std::vector<std::pair<uint32_t, OnLane>> lanes;
  for (const Range& range : ranges_) {
    lanes.clear();
    for_launched(range.thread, range.start_ns, range.end_ns, [&](const Work& work) {
      auto at = std::ranges::find_if(lanes, [&](const auto& one) { return one.first == work.lane; });
      if (at == lanes.end()) at = lanes.insert(at, {work.lane, OnLane{}});
      at->second.span.add(work.start_ns, work.end_ns);
      at->second.busy_ns += work.end_ns - work.start_ns;
    });
    sort_stably(lanes, {}, [](const auto& of) { return of.first; });
    const uint32_t name = range.row == kNoRow ? range.name : out.name_of(range.row);
    uint32_t longest = kNoRow;
    int64_t longest_ns = -1;
    for (const auto& [lane, on] : lanes) {
      const uint32_t row = out.add(lane, kind, on.span.start_ns, on.span.end_ns, name);
      if (row != kNoRow && on.busy_ns > longest_ns) longest = row, longest_ns = on.busy_ns;
    }
    if (longest != kNoRow && range.row != kNoRow) out.pair(range.row, longest);
  }
}

}  // namespace stageline
