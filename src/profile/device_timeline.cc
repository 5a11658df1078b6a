#include "profile/device_timeline.h"

#include "model/lanes.h"
#include "model/lost_work.h"
#include "model/torch_facts.h"
#include "profile/host_nodes.h"
#include "profile/idle_gaps.h"

namespace stageline {
namespace {

// A host that takes less than this from one launch to the next does nothing but feed the device.
constexpr int64_t kDispatchNs = 200'000;
// Work that ended this shortly before something began (or a call returned) is taken as what that waited for.
constexpr int64_t kRightAfterNs = 20'000, kReturnNs = 100'000;

class TimelineBuilder {
 public:
  TimelineBuilder(const Trace& trace, const Part& part) : trace_(trace), part_(part), s_(part.slices) {
    out_.part = &part;
  }

  DeviceTimeline build() {
    if (!s_.has_facts() || s_.size() == 0 || kernels_are_missing(part_)) return std::move(out_);
    collect_device();
    if (out_.device.empty()) return std::move(out_);
    host_until_ns_ = choose_window(trace_, part_, out_);
    collect_host();
    link_device();
    link_communication();
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
        device_communicates_ |= item.kernel == KernelClass::kCommunication;
        item.lane = static_cast<uint16_t>(l);
        out_.device.push_back(item);
      }
    sort_stably(out_.device, {}, [](const auto& a) { return a.start_ns; });
    if (const int64_t lead = clock_lead_ns(part_, [&](size_t i) { return category(i); }); lead > 0) {
      out_.lead_ns = lead;
      for (auto& item : out_.device) item.start_ns += lead, item.end_ns += lead;
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
    sort_stably(host_lanes_, [&](size_t a, size_t b) {
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
    sort_stably(out_.host, {}, [](const auto& a) { return a.start_ns; });
    for (uint32_t i = 0; i < out_.host.size(); ++i) item_of_slice_[out_.host[i].slice] = i;
    DeviceTimeline::HostItem last{};  // the end of the window
    last.start_ns = last.end_ns = host_until_ns_;
    last.slice = kNoSliceIndex;
    for (const auto& item : out_.host) last.start_ns = last.end_ns = std::max(last.end_ns, item.end_ns);
    out_.host.push_back(last);
    nodes_.emplace(trace_, part_,
                   Interval{std::min(out_.start_ns, out_.host.front().start_ns), std::max(host_until_ns_, last.end_ns)},
                   device_communicates_, out_.nodes);
  }

  int32_t launch_of(uint32_t slice) const {
    const uint32_t launch = s_.partner[slice];
    if (launch == kNoSliceIndex || is_device_work(category(launch))) return DeviceTimeline::kNone;
    return item_of_slice_[outermost_call(launch)];
  }

  void link_device() {
    by_end_ = indexes<int32_t>(out_.device.size());
    sort_stably(by_end_, {}, [&](uint32_t item) { return end_of(item); });
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
        // Nothing waits for what is launched later.
        const bool later = item.launch >= 0 && out_.device[k].launch > item.launch;
        if (later || static_cast<size_t>(k) >= j) continue;
        if (out_.device[k].lane != item.lane) {
          item.other = k;
          break;
        }
        // If another item of the lane still runs (a receive during a send), the work follows the one that has just
        // ended.
        if (item.before < 0) item.before = k;
      }
    }
  }

  // Communication of one kind, and the work that was launched before each.
  struct Before {
    std::vector<std::pair<int32_t, int32_t>> work;
    bool always = true, at_once = false;  // it begins after that work; at least once right after
    bool holds() const { return always && at_once; }
  };
  void add_before(int32_t item, int32_t work, Before& to) const {
    if (work < 0) return;
    const int64_t after = out_.device[item].start_ns - end_of(work);
    to.always &= after >= 0 && work < item;
    to.at_once |= after <= kRightAfterNs;
    to.work.emplace_back(item, work);
  }

  // The stream of a collective waits for the stream that computes, as ProcessGroupNCCL has it; where it is prefetched,
  // for none. So communication of one name on one stream needs the computation that was launched before it, if that
  // holds for all of it. Where computing ended long before, it may have to wait for the work launched last.
  void link_communication() {
    std::map<std::pair<uint16_t, StringId>, std::array<Before, 2>> kinds;
    std::vector<int32_t> launched;
    for (int32_t j = 0; j < std::ssize(out_.device); ++j)
      if (out_.device[j].launch >= 0) launched.push_back(j);
    sort_stably(launched, {}, [&](int32_t j) { return out_.device[j].launch; });
    int32_t computes = DeviceTimeline::kNone, last = DeviceTimeline::kNone, elsewhere = DeviceTimeline::kNone;
    for (const int32_t j : launched) {
      const auto& item = out_.device[j];
      if (item.kernel == KernelClass::kComputation) computes = j;
      if (last >= 0 && out_.device[last].lane != item.lane) elsewhere = last;
      last = j;
      if (item.kernel != KernelClass::kCommunication) continue;
      auto& [computation, any] = kinds[{item.lane, s_.name_id[item.slice]}];
      add_before(j, computes, computation);
      add_before(j, elsewhere, any);
    }
    for (const auto& [name, kind] : kinds) {
      const auto& [computation, any] = kind;
      const Before& before = computation.holds() ? computation : any;
      if (!computation.always || !before.holds()) continue;
      for (const auto& [item, work] : before.work) out_.device[item].needs = work;
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
      item.node = nodes_->of(item.slice);
      const bool waits = is_waiting_call(name(item.slice)), copies = waits && is_copy_call(name(item.slice));
      if (!waits && item.end_ns - item.start_ns < DeviceTimeline::kLongCallNs) continue;
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
    if (gap.end_ns - gap.host_end_ns >= DeviceTimeline::kBetweenNs) {
      out_.device[gap.next].held_by = holds_host(gap.host_end_ns, gap.end_ns);
      gap.host_end_ns = host_end_of(out_, gap.start_ns, gap.end_ns, gap.next);
    }
    if (gap.end_ns - gap.host_end_ns < DeviceTimeline::kBetweenNs && is_short(gap.next))
      out_.short_pauses_ns[launch_node(gap.next)] += gap.end_ns - gap.host_end_ns;
  }

  // Returns the call, other than a plain wait, in which the host spends most of a time when launched work does not
  // begin.
  int32_t holds_host(int64_t start, int64_t end) const {
    auto it = std::ranges::lower_bound(out_.host, end, {}, &DeviceTimeline::HostItem::start_ns);
    for (int tries = 0; it != out_.host.begin() && tries < 8; ++tries) {
      const auto& item = *--it;
      if (item.slice == kNoSliceIndex || item.end_ns - item.start_ns < DeviceTimeline::kLongCallNs) continue;
      if (2 * (std::min(end, item.end_ns) - std::max(start, item.start_ns)) < end - start) continue;
      if (name(item.slice).find("Synchronize") != std::string_view::npos) continue;
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
    auto all = indexes<int32_t>(out_.device.size());
    out_.gaps = idle_gaps(out_, all, out_.start_ns, out_.end_ns);
    for (IdleGap& gap : out_.gaps) look_at_gap(gap);
    // Finds the wait that returned right after the device became idle; the device was already idle at later waits in
    // the same gap.
    std::vector<int32_t> waits;
    for (size_t i = 0; i < out_.host.size(); ++i)
      if (out_.host[i].waits_for >= 0) waits.push_back(static_cast<int32_t>(i));
    sort_stably(waits, {}, [&](int32_t a) { return out_.host[a].end_ns; });
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

  // Calls emit(start, end, slice) for the innermost slices of a lane over [start, end), in order; `slice` is
  // kNoSliceIndex where none is open.
  template <class Emit> void innermost(size_t lane, int64_t start, int64_t end, Emit&& emit) const {
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
        if (closes > at) emit(at, closes, nodes_->is_around_run(open) ? kNoSliceIndex : open), at = closes;
        if (s_.end_ns(open) > until) break;
      }
      if (at < until) emit(at, until, kNoSliceIndex), at = until;
      if (at >= end) break;
      open = static_cast<uint32_t>(next++);
    }
  }

  static bool runs_backward(std::string_view name) { return name.find("run_backward") != std::string_view::npos; }

  // Takes the innermost slices of the thread that makes the next call. While that thread has nothing open or waits for
  // the autograd thread, it takes those of the first other thread that has any.
  template <class Emit> void host_slices(size_t lane, int64_t start, int64_t end, Emit&& emit) const {
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
    if (is_launch_call(category(call)) && s_.dur_ns[call] >= DeviceTimeline::kLongCallNs) return IdleCause::kBlocked;
    return in_call || stretch_ns < kDispatchNs ? IdleCause::kDispatch : IdleCause::kWork;
  }

  // Adds a stretch of the host to its owner's pieces.
  void add_piece(int64_t start, int64_t end, OwnerKey key, IdleCause owner) {
    if (out_.pieces.size() > piece_begin_ && out_.pieces.back().key == key) out_.pieces.back().dur_ns += end - start;
    else out_.pieces.push_back({key, end - start});
    if (!out_.owners.empty() && out_.owners.back().owner == owner && out_.owners.back().end_ns == start)
      out_.owners.back().end_ns = end;
    else out_.owners.push_back({start, end, owner});
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
        const uint32_t node = nodes_->of(slice);
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
    for (const WindowPiece& piece : busy_pieces(out_)) switch (piece.part) {
        case WindowPart::kCompute: out_.compute_ns += piece.ns(); break;
        case WindowPart::kCommunication: out_.exposed_comm_ns += piece.ns(); break;
        case WindowPart::kMemory: out_.exposed_memory_ns += piece.ns(); break;
        default: out_.other_work_ns += piece.ns(); break;
      }
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
    sort_stably(points, {}, [](const Point& a) { return std::tie(a.time, a.turn, a.what); });
    out_.order.reserve(points.size());
    for (const Point& p : points) out_.order.push_back(p.what);
  }

  static constexpr size_t kMaxThreads = 8;  // a process has dozens of threads that only wait

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  bool device_communicates_ = false;
  int64_t first_ns_ = 0;
  int64_t host_until_ns_ = INT64_MIN;  // the end of the last step
  DeviceTimeline out_;
  std::vector<size_t> host_lanes_;  // host lanes; those that launch most come first
  std::vector<int32_t> item_of_slice_, by_end_;
  std::vector<uint32_t> works_of_;  // for each host item
  std::optional<HostNodes> nodes_;
  size_t piece_begin_ = 0;
  size_t next_gap_ = 0;                            // of the gaps, which stretches of the host come to in order
  std::unordered_map<uint64_t, int64_t> drained_;  // idle time by wait (node) and owner
};

}  // namespace

int64_t stream_of(const Part& part, size_t slice, size_t lane) {
  const Slices& s = part.slices;
  const int64_t named = s.stream_id.empty() ? -1 : part.streams[s.stream_id[slice]];
  if (named >= 0 && named != UINT32_MAX) return named;  // CUPTI's number for "no stream"
  const std::string_view tid = part.lanes[lane].tid;
  const size_t digit = tid.find_first_of("-0123456789");
  return digit == std::string_view::npos ? -1 : parse_int(tid.substr(digit)).value_or(-1);
}

DeviceTimeline device_timeline(const Trace& trace, const Part& part) { return TimelineBuilder(trace, part).build(); }

}  // namespace stageline
