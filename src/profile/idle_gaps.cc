#include "profile/idle_gaps.h"

namespace stageline {
namespace {

WindowPart part_of(KernelClass kernel) {
  switch (kernel) {
    case KernelClass::kComputation: return WindowPart::kCompute;
    case KernelClass::kCommunication: return WindowPart::kCommunication;
    case KernelClass::kMemory: return WindowPart::kMemory;
    default: return WindowPart::kOther;
  }
}

}  // namespace

int64_t host_end_of(const DeviceTimeline& timeline, int64_t start, int64_t end, int32_t next) {
  if (next < 0) return end;
  const auto& item = timeline.device[next];
  const int32_t call = item.held_by >= 0 ? item.held_by : item.launch;
  return call < 0 ? start : std::clamp(timeline.host[call].end_ns, start, end);
}

std::vector<WindowPiece> busy_pieces(const DeviceTimeline& timeline) {
  std::vector<WindowPiece> pieces;
  std::vector<Interval> cover;  // of the kinds before
  for (const WindowPart part :
       {WindowPart::kCompute, WindowPart::kCommunication, WindowPart::kMemory, WindowPart::kOther}) {
    std::vector<Interval> own;
    int64_t at = timeline.start_ns;
    size_t k = 0;
    for (uint32_t j = 0; j < timeline.device.size(); ++j) {
      const auto& item = timeline.device[j];
      int64_t start = std::max(item.start_ns, at);
      if (part_of(item.kernel) != part || item.end_ns <= start) continue;
      at = item.end_ns;
      own.push_back({start, item.end_ns});
      while (k < cover.size() && cover[k].end <= start) ++k;
      for (size_t c = k; start < item.end_ns; ++c) {
        const bool covered = c < cover.size() && cover[c].start < item.end_ns;
        const int64_t until = covered ? cover[c].start : item.end_ns;
        if (until > start) pieces.push_back({start, until, part, j});
        start = covered ? cover[c].end : item.end_ns;
      }
    }
    cover.insert(cover.end(), own.begin(), own.end());
    cover = union_of(std::move(cover));
  }
  return pieces;
}

std::vector<WindowPiece> window_pieces(const DeviceTimeline& timeline) {
  std::vector<WindowPiece> pieces = busy_pieces(timeline);
  const auto idle = [&](int64_t start, int64_t end, OwnerKey key) {
    if (end > start) pieces.push_back({start, end, WindowPart::kIdle, key});
  };
  size_t k = 0;
  for (const IdleGap& gap : timeline.gaps) {
    if (!timeline.linked) {
      idle(gap.start_ns, gap.end_ns, owner_key(kHostRoot, IdleCause::kUnseen));
      continue;
    }
    int64_t at = gap.start_ns;
    while (k < timeline.idle.size() && timeline.idle[k].start_ns < gap.start_ns) ++k;
    for (; k < timeline.idle.size() && timeline.idle[k].end_ns <= gap.host_end_ns; at = timeline.idle[k++].end_ns) {
      idle(at, timeline.idle[k].start_ns, owner_key(kHostRoot, IdleCause::kUnseen));
      idle(timeline.idle[k].start_ns, timeline.idle[k].end_ns, timeline.idle[k].key);
    }
    idle(at, gap.host_end_ns, owner_key(kHostRoot, IdleCause::kUnseen));
    const int32_t launch = gap.next < 0 ? DeviceTimeline::kNone : timeline.device[gap.next].launch;
    idle(gap.host_end_ns, gap.end_ns,
         owner_key(
             launch < 0 ? kHostRoot : timeline.host[launch].node,
             gap.end_ns - gap.host_end_ns < DeviceTimeline::kBetweenNs ? IdleCause::kBetween : IdleCause::kStream));
  }
  return pieces;
}

std::vector<IdleGap> idle_gaps(const DeviceTimeline& timeline, const std::vector<int32_t>& items, int64_t from_ns,
                               int64_t until_ns) {
  std::vector<IdleGap> gaps;
  int64_t end = from_ns;
  int32_t before = DeviceTimeline::kNone;
  const auto add = [&](int64_t until, int32_t next) {
    if (until <= end) return;
    each_recorded(timeline, end, until, [&](int64_t start, int64_t stop, bool last) {
      const int32_t after = last ? next : DeviceTimeline::kNone;
      if (stop > start) gaps.push_back({start, host_end_of(timeline, start, stop, after), stop, before, after});
    });
  };
  for (const int32_t item : items) {
    add(timeline.device[item].start_ns, item);
    if (before >= 0 && timeline.device[item].end_ns <= end) continue;
    end = std::max(end, timeline.device[item].end_ns);
    before = item;
  }
  add(until_ns, DeviceTimeline::kNone);
  return gaps;
}

IdleTimes idle_times(const DeviceTimeline& timeline, const IdleGap& gap) {
  IdleTimes times{};
  if (!timeline.linked) {
    times[IdleCause::kUnseen] = gap.ns();
    return times;
  }
  const int64_t devices = gap.end_ns - gap.host_end_ns;
  times[devices < DeviceTimeline::kBetweenNs ? IdleCause::kBetween : IdleCause::kStream] = devices;
  times[IdleCause::kUnseen] = gap.host_end_ns - gap.start_ns;
  auto it =
      std::ranges::partition_point(timeline.owners, [&](const auto& owned) { return owned.end_ns <= gap.start_ns; });
  for (; it != timeline.owners.end() && it->start_ns < gap.host_end_ns; ++it) {
    const int64_t ns = std::min(it->end_ns, gap.host_end_ns) - std::max(it->start_ns, gap.start_ns);
    times[it->owner] += ns;
    times[IdleCause::kUnseen] -= ns;
  }
  return times;
}

ByEnum<IdleCause, std::vector<int64_t>, kIdleCauses> idle_pieces(const DeviceTimeline& timeline,
                                                                 const std::vector<IdleGap>& gaps) {
  ByEnum<IdleCause, std::vector<int64_t>, kIdleCauses> pieces;
  for (const IdleGap& gap : gaps) {
    const IdleTimes times = idle_times(timeline, gap);
    for (size_t cause = 0; cause < kIdleCauses; ++cause)
      if (times[cause] > 0) pieces[cause].push_back(times[cause]);
  }
  return pieces;
}

IdleCause main_cause(const IdleTimes& times) {
  return static_cast<IdleCause>(std::ranges::max_element(times) - times.begin());
}

}  // namespace stageline
