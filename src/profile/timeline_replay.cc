#include "profile/timeline_replay.h"

namespace stageline {
namespace {

// Returns when a launch let its work begin. Usually that is the call's start, and the few microseconds of the call are
// part of the work's lag. If the call was held up by anything but the device, it is the call's end.
int64_t launch_anchor(const DeviceTimeline& timeline, const DeviceTimeline::DeviceItem& item) {
  const auto& launch = timeline.host[item.launch];
  if (launch.end_ns - launch.start_ns < DeviceTimeline::kLongCallNs || launch.waits_for >= 0) return launch.start_ns;
  return std::min(launch.end_ns, item.start_ns);
}

// Returns when the last of what the work follows was ready; INT64_MIN where nothing is known.
int64_t ready_ns(const DeviceTimeline& timeline, const DeviceTimeline::DeviceItem& item) {
  int64_t ready = INT64_MIN;
  if (item.before >= 0) ready = std::max(ready, timeline.device[item.before].end_ns);
  if (item.other >= 0) ready = std::max(ready, timeline.device[item.other].end_ns);
  if (item.needs >= 0) ready = std::max(ready, timeline.device[item.needs].end_ns);
  if (item.launch >= 0) ready = std::max(ready, launch_anchor(timeline, item));
  if (item.held_by >= 0) ready = std::max(ready, std::min(timeline.host[item.held_by].end_ns, item.start_ns));
  return ready;
}

constexpr int64_t kOpen = INT64_MIN;  // the end of an operation for which other ranks have not come yet

// Replays a timeline in its order: what is ready last decides when the next begins. Removed time is shorter.
class TimelineReplay {
 public:
  // The ties of a rank that is replayed with others: for each device item whether the others decide when it ends, and
  // the host's waits that no call shows.
  struct Others {
    std::vector<bool> meets;
    std::vector<int32_t> unseen_waits;
  };
  TimelineReplay(const DeviceTimeline& timeline, const TakenOut& out, const Others* others = nullptr)
      : t_(timeline), out_(out), others_(others), start_(t_.host.size()), end_(t_.host.size()),
        shorter_(t_.host.size(), 0), work_end_(t_.device.size()), begins_(others == nullptr ? 0 : t_.device.size()),
        last_(t_.start_ns) {}

  // Goes on in the order until it needs an end that is open. Returns the operations at which the rank came to meet
  // others: they are open until close() sets their end.
  std::vector<uint32_t> advance() {
    std::vector<uint32_t> came;
    for (; at_ < t_.order.size(); ++at_) {
      const uint32_t what = t_.order[at_];
      const size_t i = what / 3;
      if (others_ != nullptr && !is_ready(what)) break;
      if (what % 3 == 0) {
        begin_call(i);
      } else if (what % 3 == 1) {
        do_work(i);
        if (others_ != nullptr && others_->meets[i]) came.push_back(static_cast<uint32_t>(i));
        last_ = std::max(last_, work_end_[i]);
      } else {
        end_call(i);
        if (t_.host[i].slice == kNoSliceIndex) last_ = std::max(last_, end_[i]);
      }
    }
    return came;
  }
  bool done() const { return at_ == t_.order.size(); }
  // By how much later than recorded an operation began.
  int64_t delay_ns(uint32_t item) const { return begins_[item] - t_.device[item].start_ns; }
  void close(uint32_t item, int64_t end_ns) {
    work_end_[item] = end_ns;
    last_ = std::max(last_, end_ns);
  }
  // When the last work or call without a slice ends.
  int64_t window_ns() const { return last_ - t_.start_ns - length_of(t_.unrecorded); }

 private:
  static constexpr int64_t kReturnsAtOnceNs = 5'000, kNextWorkNs = 1'000, kLaunchedNs = 4'000;

  bool is_open(int32_t item) const { return item >= 0 && work_end_[item] == kOpen; }
  bool is_ready(uint32_t what) const {
    if (what % 3 == 0) return !is_open(others_->unseen_waits[what / 3]);
    if (what % 3 == 2) return !is_open(t_.host[what / 3].waits_for);
    const auto& item = t_.device[what / 3];
    return !is_open(item.before) && !is_open(item.other) && !is_open(item.needs);
  }

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
    if (const int32_t work = others_ == nullptr ? DeviceTimeline::kNone : others_->unseen_waits[i]; work >= 0)
      start_[i] = std::max(end_[item.before], work_end_[work] + (item.start_ns - t_.device[work].end_ns));
    shorter_[i] = removed(item.own, item.pieces_end);
  }

  void end_call(size_t i) {
    const auto& item = t_.host[i];
    const int64_t returns_at_once = start_[i] + std::min(item.end_ns - item.start_ns, kReturnsAtOnceNs);
    if (!out_.wait_nodes.empty() && out_.wait_nodes[item.node]) end_[i] = returns_at_once;
    else if (item.waits_for >= 0)
      end_[i] = std::max(returns_at_once, work_end_[item.waits_for] + (item.end_ns - t_.device[item.waits_for].end_ns));
    else end_[i] = start_[i] + (item.end_ns - item.start_ns) - shorter_[i];
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
    for (const int32_t work : {item.other, item.needs})
      if (work >= 0) after(t_.device[work].end_ns, work_end_[work], kNextWorkNs);
    if (item.launch >= 0) {
      const int64_t anchor = launch_anchor(t_, item);
      after(anchor, reached(item.launch, anchor), kLaunchedNs);
    }
    if (item.held_by >= 0) {
      const int64_t anchor = std::min(t_.host[item.held_by].end_ns, item.start_ns);
      after(anchor, reached(item.held_by, anchor), 0);
    }
    if (begins == INT64_MIN) begins = item.start_ns;  // nothing is known that it follows
    if (others_ != nullptr && others_->meets[i]) {
      begins_[i] = begins;
      work_end_[i] = kOpen;
      return;
    }
    const bool known = !out_.device_ns.empty() && out_.device_ns[i] >= 0;
    work_end_[i] = begins + (known ? out_.device_ns[i] : item.end_ns - item.start_ns);
  }

  const DeviceTimeline& t_;
  const TakenOut& out_;
  const Others* others_;
  size_t at_ = 0;                     // position in the order
  std::vector<int64_t> start_, end_;  // of the host's calls
  std::vector<int64_t> shorter_;      // by how much the call itself is shorter
  std::vector<int64_t> work_end_;     // of the devices' work
  std::vector<int64_t> begins_;       // of operations at which ranks meet
  int64_t last_;
};

// Returns true when nothing was recorded of the host then; a range of the program may have been open.
bool shows_nothing(const DeviceTimeline& timeline, OwnerKey key) {
  const auto owner = static_cast<IdleCause>(key % kIdleCauses);
  const uint32_t node = node_of_key(key);
  const bool range = node == kHostRoot || timeline.nodes[node].category == Category::kUserAnnotation;
  return owner == IdleCause::kUnseen || (owner == IdleCause::kDispatch && range);
}

// Returns for each host item the device work that the host waited for before it, where no call shows the wait. Such
// waits are at the first call of a step and at the end of the last one. All work must have ended by then, and nothing
// may be recorded of the host from its call before until that end.
std::vector<int32_t> unseen_waits(const DeviceTimeline& timeline) {
  std::vector<int32_t> waits(timeline.host.size(), DeviceTimeline::kNone);
  std::vector<int64_t> borders;  // starts of steps
  for (const ProfilerStep& step : timeline.part->steps) borders.push_back(step.start_ns);
  borders.push_back(timeline.host.empty() ? 0 : timeline.host.back().start_ns);
  size_t next = 0, j = 0;
  int32_t last = DeviceTimeline::kNone;
  for (const int64_t border : borders) {
    while (next < timeline.host.size() && timeline.host[next].start_ns < border) ++next;
    if (next == timeline.host.size()) break;
    const auto& item = timeline.host[next];
    for (; j < timeline.device.size() && timeline.device[j].start_ns < item.start_ns; ++j)
      if (last < 0 || timeline.device[j].end_ns > timeline.device[last].end_ns) last = static_cast<int32_t>(j);
    if (last < 0 || item.before < 0 || item.from_start) continue;
    const int64_t waited = timeline.device[last].end_ns - timeline.host[item.before].end_ns;
    if (waited <= 0 || timeline.device[last].end_ns > item.start_ns) continue;
    int64_t unseen = 0;
    for (size_t k = item.pieces; k < item.own; ++k)
      if (shows_nothing(timeline, timeline.pieces[k].key)) unseen += timeline.pieces[k].dur_ns;
    if (unseen >= waited) waits[next] = last;
  }
  return waits;
}

// A meeting while ranks come to it.
struct Gathering {
  size_t waited_for = 0;            // ranks that have not come
  int64_t transfer_ns = INT64_MAX;  // the shortest of its operations
  int64_t later_ns = INT64_MIN;     // how much later than recorded the last rank has come so far
};

class ReplayTogether {
 public:
  ReplayTogether(const std::vector<DeviceTimeline>& timelines, const std::vector<TakenOut>& out,
                 const std::vector<Meeting>& meetings, uint32_t punctual)
      : timelines_(timelines), meetings_(meetings), punctual_(punctual), gatherings_(meetings.size()) {
    for (const DeviceTimeline& timeline : timelines) {
      meeting_of_.emplace_back(timeline.device.size(), 0);
      others_.push_back({std::vector<bool>(timeline.device.size()), unseen_waits(timeline)});
    }
    for (size_t m = 0; m < meetings.size(); ++m) {
      for (const auto& [rank, item] : meetings[m].members) {
        others_[rank].meets[item] = true;
        meeting_of_[rank][item] = static_cast<uint32_t>(m);
        gatherings_[m].transfer_ns = std::min(gatherings_[m].transfer_ns, recorded_ns(rank, item));
      }
      gatherings_[m].waited_for = meetings[m].members.size();
    }
    for (size_t r = 0; r < timelines.size(); ++r) replays_.emplace_back(timelines[r], out[r], &others_[r]);
  }

  std::vector<int64_t> windows() {
    for (bool any = true; any;) {
      any = false;
      for (uint32_t r = 0; r < replays_.size(); ++r)
        for (const uint32_t item : replays_[r].advance()) {
          any = true;
          come(r, item);
        }
    }
    std::vector<int64_t> windows;
    for (const TimelineReplay& replay : replays_) {
      if (!replay.done()) return {};
      windows.push_back(replay.window_ns());
    }
    return windows;
  }

 private:
  int64_t recorded_ns(uint32_t rank, uint32_t item) const {
    return timelines_[rank].device[item].end_ns - timelines_[rank].device[item].start_ns;
  }

  // All leave together, so a rank came before the last one by what its operation is longer than the shortest.
  void come(uint32_t rank, uint32_t item) {
    const uint32_t m = meeting_of_[rank][item];
    Gathering& gathering = gatherings_[m];
    const int64_t before_last = recorded_ns(rank, item) - gathering.transfer_ns;
    if (rank != punctual_)
      gathering.later_ns = std::max(gathering.later_ns, replays_[rank].delay_ns(item) - before_last);
    if (--gathering.waited_for > 0) return;
    for (const auto& [member, work] : meetings_[m].members)
      replays_[member].close(work,
                             timelines_[member].device[work].end_ns + gathering.later_ns - meetings_[m].shorter_ns);
  }

  const std::vector<DeviceTimeline>& timelines_;
  const std::vector<Meeting>& meetings_;
  const uint32_t punctual_;
  std::vector<Gathering> gatherings_;  // for each meeting
  std::vector<TimelineReplay::Others> others_;
  std::vector<std::vector<uint32_t>> meeting_of_;  // for each rank and device item
  std::vector<TimelineReplay> replays_;
};

}  // namespace

int64_t replayed_ns(const DeviceTimeline& timeline, const TakenOut& out) {
  TimelineReplay replay(timeline, out);
  replay.advance();
  return replay.window_ns();
}

std::vector<int64_t> replayed_together(const std::vector<DeviceTimeline>& timelines, const std::vector<TakenOut>& out,
                                       const std::vector<Meeting>& meetings, uint32_t punctual) {
  return ReplayTogether(timelines, out, meetings, punctual).windows();
}

}  // namespace stageline
