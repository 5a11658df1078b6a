#include "profile/device_timeline.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/number.h"
#include "model/lane_of.h"
#include "model/lost_work.h"
#include "model/torch_facts.h"
#include "profile/python_stacks.h"

namespace stageline {
namespace {

// A host that takes less than this from one launch to the next does nothing but feed the device.
constexpr int64_t kDispatchNs = 200'000;
// A call that takes longer than this is held up; launches take 2 to 20 µs.
constexpr int64_t kLongCallNs = 100'000;
// Gaps shorter than this before work that was launched in time are the device's own pace, which needs no reason.
constexpr int64_t kBetweenNs = 30'000;
// Work that ended this shortly before something began (or a call returned) is taken as what that waited for.
constexpr int64_t kRightAfterNs = 20'000, kReturnNs = 100'000;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Returns when a launch let its work begin. Usually that is the call's start, and the few microseconds of the call are
// part of the work's lag. If the call was held up by anything but the device, it is the call's end.
int64_t launch_anchor(const DeviceTimeline& t, const DeviceTimeline::DeviceItem& item) {
  const auto& launch = t.host[item.launch];
  if (launch.end_ns - launch.start_ns < kLongCallNs || launch.waits_for >= 0) return launch.start_ns;
  return std::min(launch.end_ns, item.start_ns);
}

// Returns when the last of what the work follows was ready; INT64_MIN where nothing is known.
int64_t ready_ns(const DeviceTimeline& t, const DeviceTimeline::DeviceItem& item) {
  int64_t ready = INT64_MIN;
  if (item.before >= 0) ready = std::max(ready, t.device[item.before].end_ns);
  if (item.other >= 0) ready = std::max(ready, t.device[item.other].end_ns);
  if (item.launch >= 0) ready = std::max(ready, launch_anchor(t, item));
  if (item.held_by >= 0) ready = std::max(ready, std::min(t.host[item.held_by].end_ns, item.start_ns));
  return ready;
}

// Calls each(start, end, last) for what was recorded of [start, end); `last`: nothing of it follows.
template <class Each>
void each_recorded(const DeviceTimeline& t, int64_t start, int64_t end, Each&& each) {
  for (const Interval& hole : t.unrecorded) {
    if (hole.end <= start || hole.start >= end) continue;
    if (hole.start > start) each(start, hole.start, false);
    start = std::min(end, hole.end);
  }
  each(start, end, true);
}

// Returns the end of the host's part of a gap: of the call that launched the next work, or of one that held the host.
int64_t host_end_of(const DeviceTimeline& t, int64_t start, int64_t end, int32_t next) {
  if (next < 0) return end;
  const auto& item = t.device[next];
  const int32_t call = item.held_by >= 0 ? item.held_by : item.launch;
  return call < 0 ? start : std::clamp(t.host[call].end_ns, start, end);
}

WindowPart part_of(KernelClass kernel) {
  switch (kernel) {
    case KernelClass::kComputation: return WindowPart::kCompute;
    case KernelClass::kCommunication: return WindowPart::kCommunication;
    case KernelClass::kMemory: return WindowPart::kMemory;
    default: return WindowPart::kOther;
  }
}

// Calls each(piece) for the device's work in the window, kind by kind.
template <class Each>
void each_busy(const DeviceTimeline& t, Each&& each) {
  std::vector<Interval> cover;  // of the kinds before
  for (const WindowPart part :
       {WindowPart::kCompute, WindowPart::kCommunication, WindowPart::kMemory, WindowPart::kOther}) {
    std::vector<Interval> own;
    int64_t at = t.start_ns;
    size_t k = 0;
    for (uint32_t j = 0; j < t.device.size(); ++j) {
      const auto& item = t.device[j];
      int64_t start = std::max(item.start_ns, at);
      if (part_of(item.kernel) != part || item.end_ns <= start) continue;
      at = item.end_ns;
      own.push_back({start, item.end_ns});
      while (k < cover.size() && cover[k].end <= start) ++k;
      for (size_t c = k; start < item.end_ns; ++c) {
        const bool covered = c < cover.size() && cover[c].start < item.end_ns;
        const int64_t until = covered ? cover[c].start : item.end_ns;
        if (until > start) each(WindowPiece{start, until, part, j});
        start = covered ? cover[c].end : item.end_ns;
      }
    }
    cover.insert(cover.end(), own.begin(), own.end());
    cover = union_of(std::move(cover));
  }
}

bool is_copy_call(std::string_view name) { return contains(name, "Memcpy") || contains(name, "memcpy"); }

// Returns what a slice's name says about everything inside it.
IdleCause context_of_name(Category category, std::string_view name) {
  if (contains(name, "DataLoader") || contains(name, "torch/utils/data/")) return IdleCause::kInput;
  if (category == Category::kPythonFunction &&
      (name == "<built-in function collect>" || name.starts_with("<built-in method collect of module") ||
       contains(name, "gc.collect") || (contains(name, "Garbage") && contains(name, "ollect"))))
    return IdleCause::kCollector;
  if (is_launch_call(category) && is_allocator_call(name)) return IdleCause::kAllocator;
  if (is_host_message(name)) return IdleCause::kHostCollective;
  if (contains(name, "distributed_c10d.py"))
    for (const char* part : {"_object", "barrier", "store"})
      if (contains(name, part)) return IdleCause::kHostCollective;
  return IdleCause::kUnseen;
}

class TimelineBuilder {
 public:
  TimelineBuilder(const Trace& trace, const Part& part)
      : trace_(trace), part_(part), s_(part.slices), truncated_(trace.diagnostics.count("kineto.truncated") > 0) {
    out_.part = &part;
  }

  DeviceTimeline build() {
    if (!s_.has_facts() || s_.size() == 0 || kernels_are_missing(part_)) return std::move(out_);
    collect_device();
    if (out_.device.empty()) return std::move(out_);
    choose_window();
    find_unrecorded();
    collect_host();
    link_device();
    link_host();
    find_gaps();
    own_pieces();
    sum_busy();
    find_step_ends();
    order_replay();
    return std::move(out_);
  }

 private:
  Category category(size_t i) const { return trace_.categories[s_.category_id[i]].kind; }
  std::string_view name(size_t i) const { return trace_.names.text(s_.name_id[i]); }

  bool kept(size_t slice) const {
    const SliceFilter& filter = trace_.slice_filter;
    if (!filter.any()) return true;
    const uint32_t launch = s_.partner[slice];
    const uint16_t step = s_.step[launch != kNoSliceIndex ? launch : slice];
    const int64_t number = step == 0 ? INT64_MIN : part_.steps[step - 1u].number;
    if ((filter.first_step != INT64_MIN || filter.last_step != INT64_MAX) &&
        (step == 0 || number < filter.first_step || number > filter.last_step))
      return false;
    const int64_t zero = first_ns_;
    return (filter.from_ns == INT64_MIN || s_.end_ns(slice) - zero >= filter.from_ns) &&
           (filter.to_ns == INT64_MAX || s_.start_ns[slice] - zero <= filter.to_ns);
  }

  void collect_device() {
    first_ns_ = trace_.slice_filter.any() ? first_start_ns(trace_) : 0;
    for (size_t l = 0; l < part_.lanes.size(); ++l)
      for (uint32_t i = part_.lanes[l].begin; i < part_.lanes[l].end; ++i) {
        if (!is_device_work(category(i)) || !kept(i)) continue;
        DeviceTimeline::DeviceItem item{};
        item.start_ns = s_.start_ns[i];
        item.end_ns = s_.end_ns(i);
        item.slice = i;
        item.kernel = s_.class_of(i);
        item.lane = static_cast<uint16_t>(l);
        out_.device.push_back(item);
      }
    std::ranges::stable_sort(out_.device, {}, [](const auto& a) { return a.start_ns; });
    if (const int64_t lead = clock_lead_ns(part_, [&](size_t i) { return category(i); }); lead > 0) {
      out_.lead_ns = lead;
      for (auto& item : out_.device) item.start_ns += lead, item.end_ns += lead;
    }
  }

  // The beginning of a step is not an accident of the recording, so the waits of devices there count. Time before the
  // first step and after the last does not.
  void choose_window() {
    const SliceFilter& filter = trace_.slice_filter;
    out_.start_ns = out_.device.front().start_ns;
    for (const auto& item : out_.device) out_.end_ns = std::max(out_.end_ns, item.end_ns);
    const int64_t last_work_ns = out_.end_ns;
    int64_t first = INT64_MAX, last = INT64_MIN;
    find_empty_steps();
    for (size_t k = 0; k < part_.steps.size(); ++k) {
      const ProfilerStep& step = part_.steps[k];
      if (step.number < filter.first_step || step.number > filter.last_step || is_empty_[k] > 0) continue;
      if (step.start_ns >= last_work_ns && (truncated_ || first == INT64_MAX)) continue;
      first = std::min(first, step.start_ns);
      last = std::max(last, step.end_ns);
      ++out_.step_count;
    }
    if (out_.step_count == 0 || filter.from_ns != INT64_MIN || filter.to_ns != INT64_MAX) return;
    leave_out_work_outside(first, last);
    // Work of earlier steps that still runs when the first step begins does not belong to these steps.
    out_.start_ns = std::min(first, out_.start_ns);
    if (!truncated_) out_.end_ns = std::max(out_.end_ns, last), host_until_ns_ = last;
  }

  // A step in which neither a host nor a device did anything was not recorded: its events lost their times, or tracing
  // had ended.
  void find_empty_steps() {
    is_empty_.assign(part_.steps.size() + 1, 0);
    size_t work = 0;
    int64_t busy_until = INT64_MIN;
    for (size_t k = 0; k < part_.steps.size(); ++k) {
      const ProfilerStep& step = part_.steps[k];
      for (; work < out_.device.size() && out_.device[work].start_ns < step.end_ns; ++work)
        busy_until = std::max(busy_until, out_.device[work].end_ns);
      is_empty_[k] =
          busy_until <= step.start_ns && std::ranges::none_of(part_.lanes, [&](const Lane& lane) {
            const auto* starts = s_.start_ns.data();
            auto i =
                static_cast<size_t>(std::lower_bound(starts + lane.begin, starts + lane.end, step.start_ns) - starts);
            const auto tells = [&](size_t at) {  // neither the range of the step itself nor a row of an unknown kind
              return category(at) == Category::kUserAnnotation ? starts[at] > step.start_ns
                                                               : category(at) != Category::kOther;
            };
            while (i < lane.end && starts[i] < step.end_ns && !tells(i)) ++i;
            return i < lane.end && starts[i] < step.end_ns;
          });
    }
  }

  // Work that was launched outside of all steps, and ran outside of them, is none of a step. Where numbers of steps
  // leave some out, these were not recorded.
  void leave_out_work_outside(int64_t first, int64_t last) {
    std::vector<ProfilerStep> steps;
    for (const ProfilerStep& step : part_.steps)
      if (step.end_ns >= first && step.start_ns <= last) steps.push_back(step);
    int64_t stride = INT64_MAX;
    for (size_t k = 1; k < steps.size(); ++k)
      if (steps[k].number > steps[k - 1].number) stride = std::min(stride, steps[k].number - steps[k - 1].number);
    std::vector<Interval> runs;
    for (size_t k = 0; k < steps.size(); ++k) {
      if (k == 0 || steps[k].number - steps[k - 1].number > stride) runs.push_back({steps[k].start_ns, 0});
      runs.back().end = std::max(runs.back().end, steps[k].end_ns);
    }
    const CoveredTime in_steps(union_of(runs));
    const auto outside = [&](const DeviceTimeline::DeviceItem& item) {
      const uint32_t launch = s_.partner[item.slice];
      return launch != kNoSliceIndex && s_.step[launch] == 0 && in_steps.within(item.start_ns, item.end_ns) == 0;
    };
    if (std::ranges::all_of(out_.device, outside)) return;
    std::erase_if(out_.device, outside);
    out_.start_ns = out_.device.front().start_ns, out_.end_ns = INT64_MIN;
    size_t work = 0;
    for (const Interval& run : runs) {
      for (; work < out_.device.size() && out_.device[work].start_ns < run.start; ++work)
        out_.end_ns = std::max(out_.end_ns, out_.device[work].end_ns);
      if (run.start != runs.front().start && out_.end_ns < run.start)
        out_.unrecorded.push_back({out_.end_ns, run.start});
      out_.end_ns = std::max(out_.end_ns, run.end);
    }
    out_.end_ns = INT64_MIN;
    for (const auto& item : out_.device) out_.end_ns = std::max(out_.end_ns, item.end_ns);
  }

  // Device work, steps and the beginnings of recordings are all in order of start: one pass over each.
  void find_unrecorded() {
    size_t work = 0, step = 0;
    int64_t last_end = out_.start_ns;
    for (const int64_t begins : part_.later_recordings_ns) {
      for (; work < out_.device.size() && out_.device[work].start_ns < begins; ++work)
        last_end = std::max(last_end, out_.device[work].end_ns);
      for (; step < part_.steps.size() && part_.steps[step].start_ns < begins; ++step)
        last_end = std::max(last_end, part_.steps[step].end_ns);
      Interval hole{last_end, out_.end_ns};
      if (work < out_.device.size()) hole.end = std::min(hole.end, out_.device[work].start_ns);
      if (step < part_.steps.size()) hole.end = std::min(hole.end, part_.steps[step].start_ns);
      if (hole.start < hole.end) out_.unrecorded.push_back(hole);
    }
    leave_out_steps([&](size_t k) { return is_empty_[k] > 0; });
    leave_out_lost_work();
    out_.unrecorded = union_of(std::move(out_.unrecorded));  // a recording may hold neither work nor a step
  }

  // Where the work of launches is missing, it is unknown whether the device was busy. Steps that lost most of their
  // work do not count, if others are left. Elsewhere the time from such a launch until recorded work that was launched
  // later counts to the length of its step, and to no share.
  void leave_out_lost_work() {
    const LostLaunches found =
        lost_launches(part_, [&](size_t i) { return category(i); }, [&](StringId id) { return trace_.names.text(id); });
    if (found.lost.empty()) return;
    std::vector<int64_t> balance(part_.steps.size() + 1, 0);  // of each step: lost launches less the others
    for (const uint32_t call : found.launches) --balance[s_.step[call]];
    for (const uint32_t call : found.lost) balance[s_.step[call]] += 2;
    for (const uint32_t call : found.lost) out_.end_ns = std::max(out_.end_ns, s_.end_ns(call));
    const auto counts = [&](const ProfilerStep& step) {
      return step.end_ns > out_.start_ns && step.start_ns < out_.end_ns;
    };
    int64_t gone = 0;
    for (size_t k = 0; k < part_.steps.size(); ++k) gone += balance[k + 1] > 0 && counts(part_.steps[k]);
    const bool by_steps = gone > 0 && gone < static_cast<int64_t>(out_.step_count);
    if (by_steps) {
      leave_out_steps([&](size_t k) { return balance[k + 1] > 0 && counts(part_.steps[k]); });
      out_.step_count -= gone;
    }
    std::vector<int64_t> lost_ns;
    for (const uint32_t call : found.lost)
      if (!by_steps || balance[s_.step[call]] <= 0) lost_ns.push_back(s_.start_ns[call]);
    std::ranges::sort(lost_ns);
    size_t lost = 0;
    int64_t busy_until = out_.start_ns;
    for (size_t k = 0; k <= out_.device.size(); ++k) {
      const int64_t next = k < out_.device.size() ? out_.device[k].start_ns : out_.end_ns;
      if (lost < lost_ns.size() && std::max(lost_ns[lost], busy_until) < next) {
        out_.unrecorded.push_back({std::max(lost_ns[lost], busy_until), next});
        out_.lost_ns += next - out_.unrecorded.back().start;
      }
      if (k == out_.device.size()) break;
      busy_until = std::max(busy_until, out_.device[k].end_ns);
      const uint32_t launch = s_.partner[out_.device[k].slice];
      const int64_t launched = launch == kNoSliceIndex ? next : s_.start_ns[launch];
      while (lost < lost_ns.size() && lost_ns[lost] < launched) ++lost;
    }
  }

  // Leaves out what no recorded work covers of some steps.
  template <class Chosen>
  void leave_out_steps(Chosen chosen) {
    size_t j = 0;
    int64_t busy_until = out_.start_ns;
    for (size_t k = 0; k < part_.steps.size(); ++k) {
      const ProfilerStep& step = part_.steps[k];
      if (!chosen(k) || step.end_ns <= out_.start_ns || step.start_ns >= out_.end_ns) continue;
      for (; j < out_.device.size() && out_.device[j].start_ns < step.start_ns; ++j)
        busy_until = std::max(busy_until, out_.device[j].end_ns);
      busy_until = std::max(busy_until, step.start_ns);
      for (; j < out_.device.size() && out_.device[j].start_ns < step.end_ns; ++j) {
        if (out_.device[j].start_ns > busy_until) out_.unrecorded.push_back({busy_until, out_.device[j].start_ns});
        busy_until = std::max(busy_until, out_.device[j].end_ns);
      }
      if (busy_until < step.end_ns) out_.unrecorded.push_back({busy_until, std::min(step.end_ns, out_.end_ns)});
    }
  }

  uint32_t outermost_call(uint32_t slice) const {
    for (uint32_t up = s_.parent[slice]; up != kNoSliceIndex && up < slice && is_launch_call(category(up));
         up = s_.parent[slice])
      slice = up;
    return slice;
  }

  // Rows of unknown kinds, alone on a lane, do not show what the host does.
  bool shows_host(const Lane& lane) const {
    for (size_t i = lane.begin; i < lane.end; ++i)
      if (is_host(category(i)) || is_host_message(name(i))) return true;
    return false;
  }

  void collect_host() {
    host_until_ns_ = std::max(host_until_ns_, out_.start_ns);
    item_of_slice_.assign(s_.size(), DeviceTimeline::kNone);
    std::vector<size_t> launches(part_.lanes.size(), 0);
    std::vector<bool> launching(s_.size(), false);
    for (const auto& item : out_.device) {
      const uint32_t launch = s_.partner[item.slice];
      if (launch == kNoSliceIndex || is_device_work(category(launch))) continue;
      const size_t lane = lane_of(part_, launch);
      if (lane == SIZE_MAX) continue;
      ++launches[lane];
      launching[outermost_call(launch)] = true;
    }
    for (size_t l = 0; l < part_.lanes.size(); ++l)
      if (const Lane& lane = part_.lanes[l];
          lane.begin < lane.end && lane.kind != LaneKind::kDeviceStream && shows_host(lane))
        host_lanes_.push_back(l);
    std::ranges::stable_sort(host_lanes_, [&](size_t a, size_t b) {
      return launches[a] != launches[b]
                 ? launches[a] > launches[b]
                 : part_.lanes[a].end - part_.lanes[a].begin > part_.lanes[b].end - part_.lanes[b].begin;
    });
    out_.nodes.push_back({});
    for (const size_t l : host_lanes_) {
      if (launches[l] == 0) continue;
      for (uint32_t i = part_.lanes[l].begin; i < part_.lanes[l].end; ++i) {
        const auto slice = i;
        if (s_.start_ns[i] >= out_.end_ns || (!launching[i] && s_.end_ns(i) < out_.start_ns)) continue;
        if (!launching[i] &&
            (!is_launch_call(category(i)) || outermost_call(slice) != slice || !is_waiting_call(name(i))))
          continue;
        DeviceTimeline::HostItem item{};
        item.start_ns = s_.start_ns[i];
        // In a file that was cut off, calls may last longer than the recording.
        item.end_ns = std::min(s_.end_ns(i), out_.end_ns);
        item.slice = slice;
        out_.host.push_back(item);
      }
    }
    std::ranges::stable_sort(out_.host, {}, [](const auto& a) { return a.start_ns; });
    for (uint32_t i = 0; i < out_.host.size(); ++i) item_of_slice_[out_.host[i].slice] = i;
    DeviceTimeline::HostItem last{};  // the end of the window
    last.start_ns = last.end_ns = host_until_ns_;
    last.slice = kNoSliceIndex;
    for (const auto& item : out_.host) last.start_ns = last.end_ns = std::max(last.end_ns, item.end_ns);
    out_.host.push_back(last);
  }

  int32_t launch_of(uint32_t slice) const {
    const uint32_t launch = s_.partner[slice];
    if (launch == kNoSliceIndex || is_device_work(category(launch))) return DeviceTimeline::kNone;
    return item_of_slice_[outermost_call(launch)];
  }

  void link_device() {
    by_end_.resize(out_.device.size());
    std::iota(by_end_.begin(), by_end_.end(), 0);
    std::ranges::stable_sort(by_end_, {}, [&](uint32_t item) { return end_of(item); });
    std::vector<int32_t> last_of_lane(part_.lanes.size(), DeviceTimeline::kNone);
    for (uint32_t j = 0; j < out_.device.size(); ++j) {
      auto& item = out_.device[j];
      item.launch = launch_of(item.slice);
      // Links that go back in time are wrong, and would make the replay go in a circle.
      if (item.launch >= 0 && out_.host[item.launch].start_ns > item.start_ns) item.launch = DeviceTimeline::kNone;
      int32_t& last = last_of_lane[item.lane];
      if (last >= 0 && end_of(last) <= item.start_ns) item.before = last;
      if (last < 0 || end_of(last) <= item.end_ns) last = j;
    }
    const auto linked =
        std::ranges::count_if(out_.device, [](const DeviceTimeline::DeviceItem& item) { return item.launch >= 0; });
    out_.linked = 2 * static_cast<size_t>(linked) >= out_.device.size();
    for (size_t j = 0; j < out_.device.size(); ++j) {
      auto& item = out_.device[j];
      int64_t ready = item.before >= 0 ? end_of(item.before) : INT64_MIN;
      if (item.launch >= 0) ready = std::max(ready, out_.host[item.launch].start_ns);
      auto it = std::upper_bound(by_end_.begin(), by_end_.end(), item.start_ns,
                                 [&](int64_t t, int32_t k) { return t < end_of(k); });
      for (int tries = 0; it != by_end_.begin() && tries < 4; ++tries) {
        const int32_t k = *--it;
        if (end_of(k) <= ready || item.start_ns - end_of(k) > kRightAfterNs) break;
        if (out_.device[k].lane == item.lane || static_cast<size_t>(k) >= j) continue;
        item.other = k;
        break;
      }
    }
  }

  int64_t end_of(int32_t device) const { return out_.device[device].end_ns; }

  void link_host() {
    int32_t latest = DeviceTimeline::kNone;  // of the items so far, the one that ends last
    for (uint32_t i = 0; i < out_.host.size(); ++i) {
      auto& item = out_.host[i];
      item.before = latest;
      if (latest >= 0) {
        const auto& previous = out_.host[latest];
        const bool instant = previous.start_ns == previous.end_ns && previous.end_ns == item.start_ns;
        item.from_start = previous.end_ns > item.start_ns || instant;
        if (item.from_start) item.before = i - 1;
      }
      if (latest < 0 || item.end_ns >= out_.host[latest].end_ns) latest = i;
      if (item.slice == kNoSliceIndex) continue;
      item.node = node_of(item.slice);
      const bool waits = is_waiting_call(name(item.slice)), copies = waits && is_copy_call(name(item.slice));
      if (!waits && item.end_ns - item.start_ns < kLongCallNs) continue;
      // Finds the device work that ended last before the call returned, provided that the call began before that. A
      // copy from pageable memory may end shortly after its call, which returns when the last piece is staged.
      auto it = std::upper_bound(by_end_.begin(), by_end_.end(), item.end_ns + (copies ? kReturnNs : 0),
                                 [&](int64_t t, int32_t k) { return t < end_of(k); });
      const int64_t returns_after = waits ? kReturnNs : kRightAfterNs;
      while (it != by_end_.begin()) {
        const int32_t k = *--it;
        if (end_of(k) <= item.start_ns || item.end_ns - end_of(k) > returns_after) break;
        const auto& work = out_.device[k];
        if (work.start_ns >= item.end_ns || work.launch > static_cast<int32_t>(i)) continue;
        // A copy call waits for its own copy or does not wait at all. Other calls do not wait for work that they launch
        // themselves.
        if ((work.launch == static_cast<int32_t>(i)) != copies) continue;
        item.waits_for = k;
        break;
      }
    }
  }

  // ---- gaps -------------------------------------------------------------------------------------------------------

  // Finds which call held the host while launched work did not begin, and what the gap adds to pauses of short kernels.
  void look_at_gap(IdleGap& gap) {
    out_.longest_gap_ns = std::max(out_.longest_gap_ns, gap.ns());
    if (gap.next < 0) return;
    if (gap.end_ns - gap.host_end_ns >= kBetweenNs) {
      out_.device[gap.next].held_by = holds_host(gap.host_end_ns, gap.end_ns);
      gap.host_end_ns = host_end_of(out_, gap.start_ns, gap.end_ns, gap.next);
    }
    if (gap.end_ns - gap.host_end_ns < kBetweenNs && is_short(gap.next))
      out_.short_pauses_ns[launch_node(gap.next)] += gap.end_ns - gap.host_end_ns;
  }

  // Returns the call, other than a plain wait, in which the host spends most of a time when launched work does not
  // begin.
  int32_t holds_host(int64_t start, int64_t end) const {
    auto it = std::ranges::lower_bound(out_.host, end, {}, &DeviceTimeline::HostItem::start_ns);
    for (int tries = 0; it != out_.host.begin() && tries < 8; ++tries) {
      const auto& item = *--it;
      if (item.slice == kNoSliceIndex || item.end_ns - item.start_ns < kLongCallNs) continue;
      if (2 * (std::min(end, item.end_ns) - std::max(start, item.start_ns)) < end - start) continue;
      if (contains(name(item.slice), "Synchronize")) continue;
      return static_cast<int32_t>(it - out_.host.begin());
    }
    return DeviceTimeline::kNone;
  }

  // True for work that is shorter than the call that launched it, and that was launched alone (not as part of a graph).
  bool is_short(size_t device) const {
    const auto& work = out_.device[device];
    if (work.launch < 0 || works_of_[work.launch] != 1) return false;
    const auto& launch = out_.host[work.launch];
    return work.kernel == KernelClass::kComputation && work.end_ns - work.start_ns < launch.end_ns - launch.start_ns;
  }
  uint32_t launch_node(size_t device) const { return out_.host[out_.device[device].launch].node; }

  void find_gaps() {
    works_of_.assign(out_.host.size(), 0);
    for (const auto& item : out_.device)
      if (item.launch >= 0) ++works_of_[item.launch];
    out_.short_pauses_ns.assign(out_.nodes.size(), 0);
    out_.short_kernel_count.assign(out_.nodes.size(), 0);
    out_.shortest_kernel_ns = INT64_MAX;
    for (size_t j = 0; j < out_.device.size(); ++j) {
      const auto& work = out_.device[j];
      if (work.kernel == KernelClass::kComputation)
        out_.shortest_kernel_ns = std::min(out_.shortest_kernel_ns, std::max<int64_t>(0, work.end_ns - work.start_ns));
      if (is_short(j)) ++out_.short_kernel_count[launch_node(j)];
    }
    std::vector<int32_t> all(out_.device.size());
    std::iota(all.begin(), all.end(), 0);
    out_.gaps = idle_gaps(out_, all, out_.start_ns, out_.end_ns);
    for (IdleGap& gap : out_.gaps) look_at_gap(gap);
    // Finds the wait that returned right after the device became idle; the device was already idle at later waits in
    // the same gap.
    std::vector<int32_t> waits;
    for (size_t i = 0; i < out_.host.size(); ++i)
      if (out_.host[i].waits_for >= 0) waits.push_back(static_cast<int32_t>(i));
    std::ranges::stable_sort(waits, {}, [&](int32_t a) { return out_.host[a].end_ns; });
    size_t next = 0;
    for (IdleGap& gap : out_.gaps) {
      while (next < waits.size() && out_.host[waits[next]].end_ns < gap.start_ns) ++next;
      if (next == waits.size()) break;
      const auto& item = out_.host[waits[next]];
      if (item.start_ns < gap.start_ns && item.end_ns <= gap.host_end_ns && is_waiting_call(name(item.slice)))
        gap.drain = waits[next];
    }
  }

  // ---- owners -----------------------------------------------------------------------------------------------------

  // An annotation around the whole run says nothing of what the host does in it.
  bool is_around_run(uint32_t slice) const {
    return category(slice) == Category::kUserAnnotation && profiler_step_number(name(slice)) < 0 &&
           s_.start_ns[slice] <= std::min(out_.start_ns, out_.host.front().start_ns) &&
           s_.end_ns(slice) >= std::max(host_until_ns_, out_.host.back().end_ns);
  }

  uint32_t node_of(uint32_t slice) {
    if (slice == kNoSliceIndex) return kHostRoot;
    if (node_of_slice_.empty()) node_of_slice_.assign(s_.size(), kUnset);
    path_.clear();
    uint32_t at = slice;
    while (at != kNoSliceIndex && node_of_slice_[at] == kUnset) {
      path_.push_back(at);
      const uint32_t up = s_.parent[at];
      at = up < at ? up : kNoSliceIndex;  // an enclosing slice comes before what it encloses
    }
    uint32_t node = at == kNoSliceIndex ? kHostRoot : node_of_slice_[at];
    for (size_t k = path_.size(); k-- > 0;) {
      const uint32_t i = path_[k];
      if (is_around_run(i)) {
        node_of_slice_[i] = node;
        continue;
      }
      const StringId id = plain_name(i);
      const auto [it, added] =
          child_of_.try_emplace(static_cast<uint64_t>(node) << 32 | id, static_cast<uint32_t>(out_.nodes.size()));
      if (added) {
        HostNode made{node, s_.name_id[i], category(i), i, out_.nodes[node].context};
        made.counted = counters_.contains(s_.name_id[i]);
        const IdleCause own = context_of_name(category(i), name(i));
        // The outer slice says what the time is for: memory that is allocated for the input counts as input.
        if (made.context == IdleCause::kUnseen) made.context = own;
        out_.nodes.push_back(made);
      }
      node = it->second;
      HostNode& known = out_.nodes[node];
      if (s_.dur_ns[i] > s_.dur_ns[known.slice]) known.slice = i;
      node_of_slice_[i] = node;
    }
    return node;
  }

  // Finds the names of annotations that hold a counter: several that differ in numbers alone, each of one slice. The
  // profiler's steps are not the program's annotations.
  void find_counters() {
    std::unordered_map<StringId, size_t> slices;
    for (size_t i = 0; i < s_.size(); ++i)
      if (category(i) == Category::kUserAnnotation && profiler_step_number(name(i)) < 0) ++slices[s_.name_id[i]];
    std::unordered_map<std::string, std::vector<StringId>> alike;
    for (const auto& [id, count] : slices) alike[without_numbers(trace_.names.text(id))].push_back(id);
    constexpr size_t kSeveral = 3;
    for (const auto& [text, ids] : alike)
      if (ids.size() >= kSeveral && std::ranges::all_of(ids, [&](StringId id) { return slices[id] == 1; }))
        counters_.insert(ids.begin(), ids.end());
  }

  // All steps are one node, and so are annotations that count and one function of several objects.
  StringId plain_name(uint32_t slice) {
    const StringId id = s_.name_id[slice];
    if (plain_.empty()) {
      plain_.assign(trace_.names.size(), UINT32_MAX);
      find_counters();
    }
    if (plain_[id] != UINT32_MAX) return plain_[id];
    std::string text(trace_.names.text(id));
    if (profiler_step_number(text) >= 0) text = "ProfilerStep";
    text = counters_.contains(id) ? without_numbers(text) : without_address(text);
    return plain_[id] = plain_names_.try_emplace(text, id).first->second;
  }

  // Calls emit(start, end, slice) for the innermost slices of a lane over [start, end), in order; `slice` is
  // kNoSliceIndex where none is open.
  template <class Emit>
  void innermost(size_t lane, int64_t start, int64_t end, Emit&& emit) const {
    const Lane& l = part_.lanes[lane];
    const auto first = s_.start_ns.begin() + l.begin;
    const auto last = s_.start_ns.begin() + l.end;
    size_t next = std::upper_bound(first, last, start) - s_.start_ns.begin();
    uint32_t open = next == l.begin ? kNoSliceIndex : static_cast<uint32_t>(next - 1);
    const auto up = [&](uint32_t slice) {
      const uint32_t parent = s_.parent[slice];
      return parent < slice ? parent : kNoSliceIndex;
    };
    for (int64_t at = start; at < end;) {
      const int64_t until = next < l.end ? std::min(end, s_.start_ns[next]) : end;
      for (; open != kNoSliceIndex && at < until; open = s_.end_ns(open) <= until ? up(open) : open) {
        const int64_t closes = std::min(until, s_.end_ns(open));
        if (closes > at) emit(at, closes, is_around_run(open) ? kNoSliceIndex : open), at = closes;
        if (s_.end_ns(open) > until) break;
      }
      if (at < until) emit(at, until, kNoSliceIndex), at = until;
      if (at >= end) break;
      open = static_cast<uint32_t>(next++);
    }
  }

  static bool runs_backward(std::string_view name) { return contains(name, "run_backward"); }

  // Takes the innermost slices of the thread that makes the next call. While that thread has nothing open or waits for
  // the autograd thread, it takes those of the first other thread that has any.
  template <class Emit>
  void host_slices(size_t lane, int64_t start, int64_t end, Emit&& emit) const {
    innermost(lane, start, end, [&](int64_t a, int64_t b, uint32_t slice) {
      if (slice != kNoSliceIndex && !runs_backward(name(slice))) return emit(a, b, slice);
      elsewhere(0, lane, a, b, slice, emit);
    });
  }
  template <class Emit>
  void elsewhere(size_t from, size_t but, int64_t start, int64_t end, uint32_t otherwise, Emit& emit) const {
    while (from < host_lanes_.size() && host_lanes_[from] == but) ++from;
    if (from >= std::min<size_t>(host_lanes_.size(), kMaxThreads)) return emit(start, end, otherwise);
    innermost(host_lanes_[from], start, end, [&](int64_t a, int64_t b, uint32_t slice) {
      if (slice != kNoSliceIndex && !runs_backward(name(slice))) return emit(a, b, slice);
      elsewhere(from + 1, but, a, b, otherwise == kNoSliceIndex ? slice : otherwise, emit);
    });
  }

  // The range of a whole step, with nothing around it: it says nothing of what the host does in it.
  bool is_whole_step(uint32_t node) const {
    for (; node != kHostRoot; node = out_.nodes[node].parent)
      if (profiler_step_number(trace_.names.text(out_.nodes[node].name)) < 0) return false;
    return true;
  }
  IdleCause owner_of(uint32_t node, uint32_t slice, bool in_call, int64_t stretch_ns) const {
    if (slice == kNoSliceIndex) return stretch_ns < kDispatchNs ? IdleCause::kDispatch : IdleCause::kUnseen;
    const IdleCause context = out_.nodes[node].context;
    if (context != IdleCause::kUnseen) return context;
    if (is_whole_step(node)) return stretch_ns < kDispatchNs ? IdleCause::kDispatch : IdleCause::kUnseen;
    // Work of the driver within a call (loading a module, flushing a buffer) is that call's time.
    uint32_t call = slice;
    while (category(call) == Category::kOverhead && s_.parent[call] < call) call = s_.parent[call];
    if (is_launch_call(category(call)) && s_.dur_ns[call] >= kLongCallNs) return IdleCause::kBlocked;
    return in_call || stretch_ns < kDispatchNs ? IdleCause::kDispatch : IdleCause::kWork;
  }

  // Adds a stretch of the host to its owner's pieces.
  void add_piece(int64_t start, int64_t end, OwnerKey key, IdleCause owner) {
    if (out_.pieces.size() > piece_begin_ && out_.pieces.back().key == key)
      out_.pieces.back().dur_ns += end - start;
    else
      out_.pieces.push_back({key, end - start});
    if (!out_.owners.empty() && out_.owners.back().owner == owner && out_.owners.back().end_ns == start)
      out_.owners.back().end_ns = end;
    else
      out_.owners.push_back({start, end, owner});
  }

  // Adds to an owner the gaps of the device that lie in a stretch of the host. Stretches come in order.
  void add_idle(int64_t start, int64_t end, OwnerKey key) {
    if (key >= out_.idle_of_key.size()) {
      out_.idle_of_key.resize(key + 1, 0);
      out_.longest_of_key.resize(key + 1);
    }
    const std::vector<IdleGap>& gaps = out_.gaps;
    while (next_gap_ < gaps.size() && gaps[next_gap_].host_end_ns <= start) ++next_gap_;
    for (size_t g = next_gap_; g < gaps.size() && gaps[g].start_ns < end; ++g) {
      const int64_t from = std::max(start, gaps[g].start_ns), to = std::min(end, gaps[g].host_end_ns);
      if (to <= from) continue;
      out_.idle_of_key[key] += to - from;
      out_.idle.push_back({from, to, key});
      auto& longest = out_.longest_of_key[key];
      if (to - from > longest.dur_ns) longest = {to - from, from};
      if (gaps[g].drain < 0) continue;
      const uint32_t wait = out_.host[gaps[g].drain].node;
      drained_[static_cast<uint64_t>(wait) << 32 | key] += to - from;
    }
  }

  // Gives a stretch of a lane to the owners of its slices.
  void own_stretch(size_t lane, int64_t start, int64_t end, bool in_call) {
    if (lane == SIZE_MAX) return;
    each_recorded(out_, start, end, [&](int64_t recorded, int64_t until, bool) {
      if (recorded >= until) return;
      host_slices(lane, recorded, until, [&](int64_t from, int64_t to, uint32_t slice) {
        const uint32_t node = node_of(slice);
        const IdleCause owner = owner_of(node, slice, in_call, until - recorded);
        const OwnerKey key = owner_key(node, owner);
        add_piece(from, to, key, owner);
        add_idle(from, to, key);
      });
    });
  }

  void own_pieces() {
    int64_t at = out_.start_ns;
    size_t lane = host_lanes_.empty() ? SIZE_MAX : host_lanes_.front();
    for (auto& item : out_.host) {
      if (item.slice != kNoSliceIndex) lane = lane_of(part_, item.slice);
      piece_begin_ = item.pieces = out_.pieces.size();
      own_stretch(lane, at, std::min(item.start_ns, out_.end_ns), false);
      at = std::max(at, item.start_ns);
      piece_begin_ = item.own = out_.pieces.size();
      own_stretch(lane, at, std::min(item.end_ns, out_.end_ns), true);
      at = std::max(at, item.end_ns);
      item.pieces_end = out_.pieces.size();
    }
    out_.short_pauses_ns.resize(out_.nodes.size(), 0);
    out_.short_kernel_count.resize(out_.nodes.size(), 0);
    out_.idle_of_key.resize(out_.nodes.size() * kIdleCauses, 0);
    out_.longest_of_key.resize(out_.nodes.size() * kIdleCauses);
    for (const auto& [pair, idle] : drained_)
      out_.drained.push_back({static_cast<uint32_t>(pair >> 32), static_cast<OwnerKey>(pair & UINT32_MAX), idle});
    std::ranges::sort(out_.drained, {}, [](const DrainedIdle& a) { return std::tie(a.wait_node, a.key); });
    for (const IdleGap& g : out_.gaps) {
      const IdleTimes times = idle_times(out_, g);
      for (size_t cause = 0; cause < kIdleCauses; ++cause) out_.idle_ns[cause] += times[cause];
    }
  }

  void sum_busy() {
    RunningUnion comm;
    for (const auto& item : out_.device)
      if (item.kernel == KernelClass::kCommunication && item.end_ns > out_.start_ns)
        out_.comm_ns += comm.add(std::max(item.start_ns, out_.start_ns), item.end_ns);
    each_busy(out_, [&](const WindowPiece& piece) {
      switch (piece.part) {
        case WindowPart::kCompute: out_.compute_ns += piece.ns(); break;
        case WindowPart::kCommunication: out_.exposed_comm_ns += piece.ns(); break;
        case WindowPart::kMemory: out_.exposed_memory_ns += piece.ns(); break;
        default: out_.other_work_ns += piece.ns(); break;
      }
    });
  }

  void find_step_ends() {
    std::vector<int64_t> last(part_.steps.size(), INT64_MIN);
    for (const auto& item : out_.device)
      if (const uint16_t step = s_.step.empty() ? 0 : s_.step[item.slice]; step > 0)
        last[step - 1u] = std::max(last[step - 1u], item.end_ns);
    for (int64_t at = out_.start_ns; const int64_t end : last)
      if (end > at) out_.step_ends_ns.push_back(at = end);
  }

  // Orders starts and ends such that each comes after everything it depends on, which is their order in recorded time.
  // At equal times, what returns comes before what begins, unless it began at that time itself.
  void order_replay() {
    struct Point {
      int64_t time;
      uint8_t turn;
      uint32_t what;  // host item · 3, device item · 3 + 1, return of a host item · 3 + 2
    };
    std::vector<Point> points;
    points.reserve(out_.host.size() * 2 + out_.device.size());
    for (uint32_t i = 0; i < out_.host.size(); ++i) {
      const bool instant = out_.host[i].start_ns == out_.host[i].end_ns;
      points.push_back({out_.host[i].start_ns, 1, i * 3});
      points.push_back({out_.host[i].end_ns, static_cast<uint8_t>(instant ? 3 : 0), i * 3 + 2});
    }
    for (uint32_t j = 0; j < out_.device.size(); ++j) points.push_back({out_.device[j].start_ns, 2, j * 3 + 1});
    std::ranges::stable_sort(points, {}, [](const Point& a) { return std::tie(a.time, a.turn, a.what); });
    out_.order.reserve(points.size());
    for (const Point& p : points) out_.order.push_back(p.what);
  }

  static constexpr uint32_t kUnset = UINT32_MAX;
  static constexpr size_t kMaxThreads = 8;  // a process has dozens of threads that only wait

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  bool truncated_;
  std::vector<uint8_t> is_empty_;  // for each step
  int64_t first_ns_ = 0;
  int64_t host_until_ns_ = INT64_MIN;  // the end of the last step
  DeviceTimeline out_;
  std::vector<size_t> host_lanes_;  // host lanes; those that launch most come first
  std::vector<int32_t> item_of_slice_, by_end_;
  std::vector<uint32_t> works_of_;  // for each host item
  std::vector<uint32_t> node_of_slice_, path_;
  std::unordered_map<uint64_t, uint32_t> child_of_;
  std::vector<StringId> plain_;
  std::unordered_map<std::string, StringId> plain_names_;
  std::unordered_set<StringId> counters_;
  size_t piece_begin_ = 0;
  size_t next_gap_ = 0;                            // of the gaps, which stretches of the host come to in order
  std::unordered_map<uint64_t, int64_t> drained_;  // idle time by wait (node) and owner
};

}  // namespace

std::string without_numbers(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (const bool digit = c >= '0' && c <= '9'; !digit || !out.ends_with('#')) out += digit ? '#' : c;
  return out;
}

bool is_allocator_call(std::string_view name) {
  if (contains(name, "alloc") || contains(name, "Alloc")) return true;
  if (name.starts_with("cudaFree") || name.starts_with("hipFree") || name.starts_with("cuMemFree")) return true;
  for (const char* part : {"HostRegister", "HostUnregister", "cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemRelease",
                           "cuMemSetAccess", "cuMemAddress", "aclrtFree"})
    if (contains(name, part)) return true;
  return false;
}

bool is_host_message(std::string_view name) {
  const bool mpi = name.starts_with("MPI_") && !name.starts_with("MPI_Init") && !name.starts_with("MPI_Finalize");
  return mpi || name.starts_with("gloo:") || name.starts_with("mpi:");
}

bool is_waiting_call(std::string_view name) {
  if (contains(name, "Synchronize")) return true;
  if (name == "cudaFree" || name == "hipFree" || name == "cudaFreeHost" || name == "hipHostFree") return true;
  return is_copy_call(name);  // also *Async copies: from pageable memory they block
}

int64_t DeviceTimeline::all_idle_ns() const { return std::accumulate(idle_ns.begin(), idle_ns.end(), int64_t{0}); }

int64_t stream_of(const Part& part, size_t slice, size_t lane) {
  const Slices& s = part.slices;
  const int64_t named = s.stream_id.empty() ? -1 : part.streams[s.stream_id[slice]];
  if (named >= 0 && named != UINT32_MAX) return named;  // CUPTI's number for "no stream"
  const std::string_view tid = part.lanes[lane].tid;
  const size_t digit = tid.find_first_of("-0123456789");
  return digit == std::string_view::npos ? -1 : parse_int(tid.substr(digit)).value_or(-1);
}

DeviceTimeline device_timeline(const Trace& trace, const Part& part) { return TimelineBuilder(trace, part).build(); }

std::vector<WindowPiece> window_pieces(const DeviceTimeline& t) {
  std::vector<WindowPiece> pieces;
  each_busy(t, [&](const WindowPiece& piece) { pieces.push_back(piece); });
  const auto idle = [&](int64_t start, int64_t end, OwnerKey key) {
    if (end > start) pieces.push_back({start, end, WindowPart::kIdle, key});
  };
  size_t k = 0;
  for (const IdleGap& gap : t.gaps) {
    if (!t.linked) {
      idle(gap.start_ns, gap.end_ns, owner_key(kHostRoot, IdleCause::kUnseen));
      continue;
    }
    int64_t at = gap.start_ns;
    while (k < t.idle.size() && t.idle[k].start_ns < gap.start_ns) ++k;
    for (; k < t.idle.size() && t.idle[k].end_ns <= gap.host_end_ns; at = t.idle[k++].end_ns) {
      idle(at, t.idle[k].start_ns, owner_key(kHostRoot, IdleCause::kUnseen));
      idle(t.idle[k].start_ns, t.idle[k].end_ns, t.idle[k].key);
    }
    idle(at, gap.host_end_ns, owner_key(kHostRoot, IdleCause::kUnseen));
    const int32_t launch = gap.next < 0 ? DeviceTimeline::kNone : t.device[gap.next].launch;
    idle(gap.host_end_ns, gap.end_ns,
         owner_key(launch < 0 ? kHostRoot : t.host[launch].node,
                   gap.end_ns - gap.host_end_ns < kBetweenNs ? IdleCause::kBetween : IdleCause::kStream));
  }
  return pieces;
}

std::vector<IdleGap> idle_gaps(const DeviceTimeline& t, const std::vector<int32_t>& items, int64_t from_ns,
                               int64_t until_ns) {
  std::vector<IdleGap> gaps;
  int64_t end = from_ns;
  int32_t before = DeviceTimeline::kNone;
  const auto add = [&](int64_t until, int32_t next) {
    if (until <= end) return;
    each_recorded(t, end, until, [&](int64_t start, int64_t stop, bool last) {
      const int32_t after = last ? next : DeviceTimeline::kNone;
      if (stop > start) gaps.push_back({start, host_end_of(t, start, stop, after), stop, before, after});
    });
  };
  for (const int32_t item : items) {
    add(t.device[item].start_ns, item);
    if (before >= 0 && t.device[item].end_ns <= end) continue;
    end = std::max(end, t.device[item].end_ns);
    before = item;
  }
  add(until_ns, DeviceTimeline::kNone);
  return gaps;
}

IdleTimes idle_times(const DeviceTimeline& t, const IdleGap& gap) {
  IdleTimes times{};
  if (!t.linked) {
    times[IdleCause::kUnseen] = gap.ns();
    return times;
  }
  const int64_t devices = gap.end_ns - gap.host_end_ns;
  times[devices < kBetweenNs ? IdleCause::kBetween : IdleCause::kStream] = devices;
  times[IdleCause::kUnseen] = gap.host_end_ns - gap.start_ns;
  auto it = std::ranges::partition_point(t.owners, [&](const auto& owned) { return owned.end_ns <= gap.start_ns; });
  for (; it != t.owners.end() && it->start_ns < gap.host_end_ns; ++it) {
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

namespace {

// Replays a timeline in its order: what is ready last decides when the next begins. Removed time is shorter.
class TimelineReplay {
 public:
  TimelineReplay(const DeviceTimeline& timeline, const TakenOut& out)
      : t_(timeline),
        out_(out),
        start_(t_.host.size()),
        end_(t_.host.size()),
        shorter_(t_.host.size(), 0),
        work_end_(t_.device.size()) {}

  // Returns when the last work or call without a slice ends.
  int64_t run() {
    int64_t last = t_.start_ns;
    for (const uint32_t what : t_.order) {
      const size_t i = what / 3;
      if (what % 3 == 0) {
        begin_call(i);
      } else if (what % 3 == 1) {
        do_work(i);
        last = std::max(last, work_end_[i]);
      } else {
        end_call(i);
        if (t_.host[i].slice == kNoSliceIndex) last = std::max(last, end_[i]);
      }
    }
    return last;
  }

 private:
  static constexpr int64_t kReturnsAtOnceNs = 5'000, kNextWorkNs = 1'000, kLaunchedNs = 4'000;

  int64_t removed(size_t begin, size_t stop) const {
    int64_t sum = 0;
    for (size_t k = begin; k < stop && !out_.keys.empty(); ++k)
      if (t_.pieces[k].key < out_.keys.size() && out_.keys[t_.pieces[k].key]) sum += t_.pieces[k].dur_ns;
    return sum;
  }

  void begin_call(size_t i) {
    const auto& item = t_.host[i];
    const int64_t less = removed(item.pieces, item.own);
    if (item.before < 0) {
      start_[i] = item.start_ns - less;
    } else {
      const size_t before = item.before;
      start_[i] = item.from_start ? start_[before] + (item.start_ns - t_.host[before].start_ns)
                                  : end_[before] + (item.start_ns - t_.host[before].end_ns) - less;
    }
    shorter_[i] = removed(item.own, item.pieces_end);
  }

  void end_call(size_t i) {
    const auto& item = t_.host[i];
    const int64_t returns_at_once = start_[i] + std::min(item.end_ns - item.start_ns, kReturnsAtOnceNs);
    if (!out_.wait_nodes.empty() && out_.wait_nodes[item.node])
      end_[i] = returns_at_once;
    else if (item.waits_for >= 0)
      end_[i] = std::max(returns_at_once, work_end_[item.waits_for] + (item.end_ns - t_.device[item.waits_for].end_ns));
    else
      end_[i] = start_[i] + (item.end_ns - item.start_ns) - shorter_[i];
  }

  // Returns when a place within call `i`, which was reached at `anchor_ns`, is reached now.
  int64_t reached(size_t i, int64_t anchor_ns) const {
    const int64_t into = anchor_ns - t_.host[i].start_ns;
    return start_[i] + into - std::min(into, shorter_[i]);
  }

  void do_work(size_t i) {
    const auto& item = t_.device[i];
    // The recorded lag belongs to what was ready last. For what had been ready before, only a lower bound is known.
    const int64_t last_ready = ready_ns(t_, item), lag = item.start_ns - last_ready;
    int64_t begins = INT64_MIN;
    const auto after = [&](int64_t recorded, int64_t replayed, int64_t min) {
      begins = std::max(begins, replayed + (recorded == last_ready ? lag : std::min(item.start_ns - recorded, min)));
    };
    if (item.before >= 0) after(t_.device[item.before].end_ns, work_end_[item.before], kNextWorkNs);
    if (item.other >= 0) after(t_.device[item.other].end_ns, work_end_[item.other], kNextWorkNs);
    if (item.launch >= 0) {
      const int64_t anchor = launch_anchor(t_, item);
      after(anchor, reached(item.launch, anchor), kLaunchedNs);
    }
    if (item.held_by >= 0) {
      const int64_t anchor = std::min(t_.host[item.held_by].end_ns, item.start_ns);
      after(anchor, reached(item.held_by, anchor), 0);
    }
    if (begins == INT64_MIN) begins = item.start_ns;  // nothing is known that it follows
    const bool known = !out_.device_ns.empty() && out_.device_ns[i] >= 0;
    work_end_[i] = begins + (known ? out_.device_ns[i] : item.end_ns - item.start_ns);
  }

  const DeviceTimeline& t_;
  const TakenOut& out_;
  std::vector<int64_t> start_, end_;  // of the host's calls
  std::vector<int64_t> shorter_;      // by how much the call itself is shorter
  std::vector<int64_t> work_end_;     // of the devices' work
};

}  // namespace

int64_t replayed_ns(const DeviceTimeline& t, const TakenOut& out) {
  return TimelineReplay(t, out).run() - t.start_ns - length_of(t.unrecorded);
}

}  // namespace stageline
