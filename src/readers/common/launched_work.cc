#include "readers/common/launched_work.h"

#include <map>

namespace stageline {

void LaunchedWork::settle() {
  std::sort(work_.begin(), work_.end(), [](const Work& a, const Work& b) {
    return a.correlation != b.correlation ? a.correlation < b.correlation : a.row < b.row;
  });
  for (size_t i = 0; i < work_.size(); ++i)
    if (work_[i].correlation != kNoCorrelation) first_of_.put(work_[i].correlation, static_cast<uint32_t>(i));
  std::erase_if(launches_, [&](const Launch& l) { return first_of_.get(l.correlation) == NumberMap::kNone; });
  std::sort(launches_.begin(), launches_.end(), [](const Launch& a, const Launch& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.start_ns < b.start_ns;
  });
}

void LaunchedWork::project(PartBuilder& out, size_t kind) {
  struct OnLane {
    int64_t start = INT64_MAX, end = INT64_MIN, busy = 0;
  };
  for (const Range& range : ranges_) {
    std::map<uint32_t, OnLane> lanes;
    for_launched(range.thread, range.start_ns, range.end_ns, [&](const Work& work) {
      OnLane& lane = lanes[work.lane];
      lane.start = std::min(lane.start, work.start_ns);
      lane.end = std::max(lane.end, work.end_ns);
      lane.busy += work.end_ns - work.start_ns;
    });
    const uint32_t name = range.row == kNoRow ? range.name : out.name_of(range.row);
    uint32_t longest = kNoRow;
    int64_t most = -1;
    for (const auto& [lane, on] : lanes) {
      const uint32_t row = out.add(lane, kind, on.start, on.end, name);
      if (row != kNoRow && on.busy > most) longest = row, most = on.busy;
    }
    if (longest != kNoRow && range.row != kNoRow) out.pair(range.row, longest);
  }
}

}  // namespace stageline
