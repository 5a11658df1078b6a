#include "model/lanes.h"
#include "model/message_names.h"
#include "pipeline/cells/marks.h"

namespace stageline {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

bool is_work(CellKind kind) { return is_compute(kind) || kind == CellKind::kOptimizer; }
bool is_gradient(CellKind kind) { return is_compute(kind) && kind != CellKind::kForward; }
bool is_communication(CellKind kind) { return is_message(kind) || kind == CellKind::kCollective; }

// One stretch of host time. The halves of an overlapped pair share one, as do the parts of a fused message.
struct Place {
  int64_t start_ns, end_ns;
  uint32_t lane;
  uint32_t mark;  // the first of its marks
  bool backward;
  bool pair;  // of a forward and a backward
};

// Finds the place that holds a time, on one lane or on any.
class Places {
 public:
  Places(std::span<const CellMark> marks, bool (*wanted)(CellKind)) : place_of_mark_(marks.size(), kNone) {
    for (uint32_t m = 0; m < marks.size(); ++m) {
      const CellMark& mark = marks[m];
      if (!wanted(mark.kind)) continue;
      const bool same = !places_.empty() && places_.back().lane == mark.lane &&
                        places_.back().start_ns == mark.start_ns && places_.back().end_ns == mark.end_ns &&
                        marks[places_.back().mark].slice == mark.slice;
      if (!same) places_.push_back({mark.start_ns, mark.end_ns, mark.lane, m, false, false});
      places_.back().pair = same && is_gradient(mark.kind) != is_gradient(marks[places_.back().mark].kind);
      places_.back().backward |= is_gradient(mark.kind);
      place_of_mark_[m] = static_cast<uint32_t>(places_.size() - 1);
    }
    for (uint32_t i = 0; i < places_.size(); ++i)
      if (places_[i].backward) backward_.push_back(i);
    sort_stably(backward_, {}, [&](uint32_t a) { return places_[a].start_ns; });
  }

  size_t size() const { return places_.size(); }
  const Place& operator[](size_t i) const { return places_[i]; }
  uint32_t of_mark(size_t mark) const { return place_of_mark_[mark]; }

  bool has_lane(uint32_t lane) const {
    const auto at = lower(lane, INT64_MIN);
    return at != places_.end() && at->lane == lane;
  }
  // Returns the last place of the lane that began by this time, if it has not ended.
  uint32_t on_lane(uint32_t lane, int64_t time_ns) const {
    auto at = lower(lane, time_ns + 1);
    if (at == places_.begin() || (--at)->lane != lane || time_ns >= at->end_ns) return kNone;
    return static_cast<uint32_t>(at - places_.begin());
  }
  // Returns the last backward place of any lane that began by this time, if it has not ended.
  uint32_t backward_at(int64_t time_ns) const {
    const auto after = std::upper_bound(backward_.begin(), backward_.end(), time_ns,
                                        [&](int64_t t, uint32_t place) { return t < places_[place].start_ns; });
    if (after == backward_.begin() || time_ns >= places_[*(after - 1)].end_ns) return kNone;
    return *(after - 1);
  }

 private:
  std::vector<Place>::const_iterator lower(uint32_t lane, int64_t start_ns) const {
    return std::lower_bound(places_.begin(), places_.end(), start_ns, [&](const Place& place, int64_t start) {
      return place.lane != lane ? place.lane < lane : place.start_ns < start;
    });
  }

  std::vector<Place> places_;  // ordered by lane, then start, as the marks are
  std::vector<uint32_t> place_of_mark_, backward_;
};

void extend(WorkSpan& span, int64_t start_ns, int64_t end_ns) {
  span.start_ns = span.found ? std::min(span.start_ns, start_ns) : start_ns;
  span.end_ns = span.found ? std::max(span.end_ns, end_ns) : end_ns;
  span.found = true;
}

class Spans {
 public:
  Spans(const Trace& trace, const Part& part, std::span<const CellMark> marks)
      : trace_(trace), part_(part), s_(part.slices), marks_(marks), work_(marks, is_work),
        messages_(marks, is_communication), detach_(trace.names.find("aten::detach")), compute_(work_.size()),
        copies_(work_.size()), transfer_(messages_.size()), halves_{compute_, compute_} {
    kinds_.fill(Category::kOther);
    communicates_.assign(trace.names.size(), -1);
    for (size_t c = 0; c < trace.categories.size() && c < kinds_.size(); ++c) kinds_[c] = trace.categories[c].kind;
    for (uint32_t l = 0; l < part.lanes.size(); ++l) lane_has_work_.push_back(work_.has_lane(l));
  }

  WorkSpans run(size_t count) {
    WorkSpans out;
    from_device(out);
    if (!out.on_device) from_operators(out);
    count_messages(out);
    out.spans.resize(count);
    for (size_t m = 0; m < count; ++m) {
      if (part_.lanes[marks_[m].lane].kind == LaneKind::kDeviceStream) {  // of nodes of a graph: it ran there and then
        out.spans[m] = {marks_[m].start_ns, marks_[m].end_ns, true};
        out.on_device = true;
        continue;
      }
      if (const uint32_t place = work_.of_mark(m); place != kNone)
        out.spans[m] = compute_[place].found ? of_half(m, place) : copies_[place];
      if (const uint32_t place = messages_.of_mark(m); place != kNone) out.spans[m] = transfer_[place];
      if (!out.on_device && is_title(marks_[m]))
        out.spans[m] = {marks_[m].start_ns, marks_[m].end_ns, true, true, 1, 1};
    }
    return out;
  }

 private:
  bool is_title(const CellMark& mark) const {
    return is_message(mark.kind) && is_message_title(trace_.names.text(s_.name_id[mark.slice]));
  }

  // Launches come in order, so the answer is mostly that of the previous call.
  uint32_t work_at(uint32_t lane, int64_t time_ns) {
    if (!lane_has_work_[lane]) return work_.backward_at(time_ns);
    if (last_ != kNone && work_[last_].lane == lane && work_[last_].start_ns <= time_ns &&
        time_ns < work_[last_].end_ns &&
        (last_ + 1 == work_.size() || work_[last_ + 1].lane != lane || work_[last_ + 1].start_ns > time_ns))
      return last_;
    return last_ = work_.on_lane(lane, time_ns);
  }

  void from_device(WorkSpans& out) {
    for (uint32_t l = 0; l < part_.lanes.size(); ++l) {
      const Lane& lane = part_.lanes[l];
      if (lane.kind != LaneKind::kDeviceStream) continue;
      for (size_t i = lane.begin; i < lane.end; ++i)
        if (messages_.on_lane(l, s_.start_ns[i]) == kNone) add_kernel(static_cast<uint32_t>(i), out);
    }
  }

  void add_kernel(uint32_t i, WorkSpans& out) {
    const KernelClass kernel = s_.class_of(i);
    if (kernel == KernelClass::kNone || kernel == KernelClass::kOther) return;
    const uint32_t from = s_.partner[i] != kNoSliceIndex ? s_.partner[i] : s_.parent[i];
    if (from == kNoSliceIndex) return;
    const auto host_lane = static_cast<uint32_t>(lane_of(part_, from));
    const int64_t launched = s_.start_ns[from];
    const uint32_t place = work_at(host_lane, launched);
    if (kernel == KernelClass::kCommunication) {
      const uint32_t message = messages_.on_lane(host_lane, launched);
      if (message == kNone) {
        out.loose.push_back({i, place == kNone ? kNone : work_[place].mark});
        return;
      }
      extend(transfer_[message], s_.start_ns[i], s_.end_ns(i));
      out.on_device = true;
    } else if (place != kNone) {
      const bool computes = kernel == KernelClass::kComputation;
      extend(computes ? compute_[place] : copies_[place], s_.start_ns[i], s_.end_ns(i));
      out.on_device |= computes;
    }
  }

  void count_messages(WorkSpans& out) {
    if (messages_.size() == 0) return;
    for (uint32_t l = 0; l < part_.lanes.size(); ++l) {
      const Lane& lane = part_.lanes[l];
      if (lane.kind == LaneKind::kDeviceStream) continue;
      for (size_t i = lane.begin; i < lane.end; ++i) {
        if (kinds_[s_.category_id[i]] != Category::kCpuOp || !communicates(s_.name_id[i])) continue;
        const std::string_view name = trace_.names.text(s_.name_id[i]);
        const bool send = name == "c10d::send", receive = name.starts_with("c10d::recv_");
        const uint32_t place = send || receive ? messages_.on_lane(l, s_.start_ns[i]) : kNone;
        if (place == kNone) continue;
        ++(send ? transfer_[place].sends : transfer_[place].receives);
        out.has_messages = true;
      }
    }
  }

  bool communicates(StringId name) {
    int8_t& known = communicates_[name];
    if (known < 0) known = static_cast<int8_t>(is_communication_call(trace_.names.text(name)));
    return known != 0;
  }

  // The span is from the first to the last operator of the mark, without communication. For "Forward 3" this excludes
  // the wait for its input and the sending of its output, with the detach of torch right before it, which computes
  // nothing.
  void from_operators(WorkSpans& out) {
    if (work_.size() == 0 && messages_.size() == 0) return;
    for (uint32_t l = 0; l < part_.lanes.size(); ++l) {
      const Lane& lane = part_.lanes[l];
      if (lane.kind == LaneKind::kDeviceStream) continue;
      int64_t communicating_until = INT64_MIN, counted_until = INT64_MIN;
      for (size_t i = lane.begin; i < lane.end; ++i) {
        // Annotations such as gloo:recv last until the message is complete, whatever else the thread does, so they are
        // not operators; but the message lasts as long.
        if (kinds_[s_.category_id[i]] == Category::kUserAnnotation && communicates(s_.name_id[i]))
          if (const uint32_t place = messages_.on_lane(l, s_.start_ns[i]); place != kNone) {
            extend(transfer_[place], s_.start_ns[i], s_.end_ns(i));
            transfer_[place].is_whole = true;
          }
        if (kinds_[s_.category_id[i]] != Category::kCpuOp) continue;
        const int64_t start = s_.start_ns[i], end = s_.end_ns(i);
        if (end <= counted_until || end <= communicating_until) continue;  // lies inside an operator that was counted
        if (detach_ == s_.name_id[i]) {
          counted_until = end;
        } else if (communicates(s_.name_id[i])) {
          communicating_until = end;
          if (const uint32_t place = messages_.on_lane(l, start); place != kNone) extend(transfer_[place], start, end);
        } else if (const uint32_t place = work_at(l, start); place != kNone) {
          extend(compute_[place], start, std::min(end, work_[place].end_ns));
          if (work_[place].pair)
            extend(halves_[trace_.names.text(s_.name_id[i]).starts_with("autograd::engine::")][place], start,
                   std::min(end, work_[place].end_ns));
          counted_until = end;
          out.has_operators = true;
        }
      }
    }
  }

  // An overlapped forward and backward of torch run one after the other on a host, often with a wait for the gradient
  // between; autograd's nodes separate them. Where they overlap, both have the time of the pair.
  const WorkSpan& of_half(size_t mark, uint32_t place) const {
    const WorkSpan &forward = halves_[0][place], &backward = halves_[1][place];
    const bool apart =
        forward.found && backward.found && (forward.end_ns <= backward.start_ns || backward.end_ns <= forward.start_ns);
    return !apart ? compute_[place] : is_gradient(marks_[mark].kind) ? backward : forward;
  }

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  std::span<const CellMark> marks_;
  std::array<Category, 256> kinds_;
  Places work_, messages_;
  std::optional<StringId> detach_;
  std::vector<WorkSpan> compute_, copies_, transfer_;  // for each place
  std::array<std::vector<WorkSpan>, 2> halves_;        // of pairs: operators without and with autograd's engine
  std::vector<bool> lane_has_work_;
  uint32_t last_ = kNone;             // the place that work_at() found last
  std::vector<int8_t> communicates_;  // for each name; −1 when it has not been looked at
};

}  // namespace

WorkSpans work_spans(const Trace& trace, const Part& part, std::span<const CellMark> marks) {
  return Spans(trace, part, marks).run(marks.size());
}

}  // namespace stageline
