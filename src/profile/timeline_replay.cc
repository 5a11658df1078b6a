#include "profile/timeline_replay.h"

#include <algorithm>

namespace stageline {
namespace {

// Returns when a launch let its work begin. Usually that is the call's start, and the few microseconds of the call are
// part of the work's lag. If the call was held up by anything but the device, it is the call's end.
int64_t launch_anchor(const DeviceTimeline& t, const DeviceTimeline::DeviceItem& item) {
  const auto& launch = t.host[item.launch];
  if (launch.end_ns - launch.start_ns < DeviceTimeline::kLongCallNs || launch.waits_for >= 0) return launch.start_ns;
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
