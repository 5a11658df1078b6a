#include "model/lost_work.h"
#include "profile/device_timeline.h"

namespace stageline {
namespace {

class Window {
 public:
  Window(const Trace& trace, const Part& part, DeviceTimeline& out)
      : trace_(trace), part_(part), s_(part.slices), truncated_(trace.diagnostics.count("kineto.truncated") > 0),
        out_(out) {}

  int64_t choose() {
    choose_window();
    find_unrecorded();
    return host_until_ns_;
  }

 private:
  Category category(size_t i) const { return trace_.categories[s_.category_id[i]].kind; }

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
  template <class Chosen> void leave_out_steps(Chosen chosen) {
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

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  const bool truncated_;
  DeviceTimeline& out_;
  std::vector<uint8_t> is_empty_;      // for each step
  int64_t host_until_ns_ = INT64_MIN;  // the end of the last step
};

}  // namespace

int64_t choose_window(const Trace& trace, const Part& part, DeviceTimeline& out) {
  return Window(trace, part, out).choose();
}

}  // namespace stageline
