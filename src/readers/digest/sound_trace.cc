#include "readers/digest/sound_trace.h"

#include "model/source_limits.h"

namespace stageline::digest {
namespace {

constexpr int64_t kMaxReported = int64_t{1} << 50;  // of bytes and elements: sums of thousands fit

bool sane_time(int64_t ns) { return ns >= -kMaxTimeNs && ns <= kMaxTimeNs; }
template <class Number> bool between(Number value, int64_t low, int64_t high) {
  return static_cast<int64_t>(value) >= low && static_cast<int64_t>(value) <= high;
}
template <class Ids> bool all_below(const Ids& ids, size_t end) {
  return std::ranges::all_of(ids, [&](auto id) { return id < end; });
}
bool all_below_or_none(const std::vector<uint32_t>& rows, size_t end) {
  return std::ranges::all_of(rows, [&](uint32_t row) { return row == UINT32_MAX || row < end; });
}

// No slice is its own ancestor: whoever climbs from parent to parent comes to an end.
bool climbs_end(const std::vector<uint32_t>& parent) {
  enum : uint8_t { kNew, kOnTheWay, kEnds };
  std::vector<uint8_t> state(parent.size(), kNew);
  for (size_t from = 0; from < parent.size(); ++from) {
    size_t at = from;
    for (; at < parent.size() && state[at] == kNew; at = parent[at]) state[at] = kOnTheWay;
    if (at < parent.size() && state[at] == kOnTheWay) return false;
    for (at = from; at < parent.size() && state[at] == kOnTheWay; at = parent[at]) state[at] = kEnds;
  }
  return true;
}

// Lanes lie one after another, each in order of time, or of its file where rows follow each other (Part::add_lane).
bool lanes_are_sound(const Part& part) {
  const Slices& s = part.slices;
  size_t at = 0;
  for (const Lane& lane : part.lanes) {
    if (lane.begin != at || lane.end < lane.begin || lane.end > s.size() || lane.kind > LaneKind::kDeviceStream)
      return false;
    const auto key = [&](size_t i) { return std::tuple(s.start_ns[i], -s.dur_ns[i], s.file_index[i]); };
    for (size_t i = lane.begin + 1; i < lane.end; ++i)
      if (key(i) < key(i - 1) && (s.start_ns[i] < s.end_ns(i - 1) || s.file_index[i] < s.file_index[i - 1]))
        return false;
    at = lane.end;
  }
  return at == s.size();
}

bool slices_are_sound(const Trace& trace) {
  const Part& part = trace.parts[0];
  const Slices& s = part.slices;
  const size_t n = s.size(), facts = s.category_id.empty() ? 0 : n;
  if (s.dur_ns.size() != n || s.name_id.size() != n || s.file_index.size() != n) return false;
  for (const size_t size :
       {s.parent.size(), s.correlation.size(), s.partner.size(), s.args_offset_low.size(), s.args_offset_high.size(),
        s.stream_id.size(), s.step.size(), s.category_id.size(), s.kernel_class.size()})
    if (size != facts) return false;
  for (size_t i = 0; i < n; ++i)
    if (!sane_time(s.start_ns[i]) || !between(s.dur_ns[i], 0, kMaxTimeNs) || !sane_time(s.end_ns(i))) return false;
  for (size_t i = 0; i < facts; ++i)
    if (s.step[i] > part.steps.size() || s.class_of(i) > KernelClass::kOther) return false;
  return all_below(s.name_id, trace.names.size()) && all_below(s.category_id, trace.categories.size()) &&
         all_below(s.stream_id, part.streams.size()) && all_below_or_none(s.parent, n) &&
         all_below_or_none(s.partner, n) && climbs_end(s.parent) && lanes_are_sound(part);
}

// Sparse facts: in the order of slices that are there, with texts that are there.
template <class Fact, class Sound>
bool facts_are_sound(const Trace& trace, const std::vector<Fact>& facts, Sound sound) {
  const size_t n = trace.parts[0].slices.size();
  for (size_t i = 0; i < facts.size(); ++i) {
    Fact fact = facts[i];
    bool good = fact.slice < n && (i == 0 || facts[i - 1].slice <= fact.slice) && sound(fact);
    for (const StringId* id : fact.texts()) good = good && *id < trace.names.size();
    if (!good) return false;
  }
  return true;
}

bool facts_are_sound(const Trace& trace) {
  const Part& part = trace.parts[0];
  const size_t n = part.slices.size();
  const auto slice_or_none = [&](uint32_t slice) { return slice == kNoSliceIndex || slice < n; };
  const auto rank = [](int64_t number) { return between(number, -1, kMaxRankNumber); };
  return facts_are_sound(trace, part.collectives,
                         [&](const CollectiveFact& f) {
                           return between(f.in_elements, -1, kMaxReported) &&
                                  between(f.out_elements, -1, kMaxReported) && between(f.bytes, -1, kMaxReported) &&
                                  between(f.group_size, -1, kMaxRankNumber) && rank(f.peer) && rank(f.src_rank) &&
                                  rank(f.dst_rank);
                         }) &&
         facts_are_sound(trace, part.ranges,
                         [&](const RangeFact& f) {
                           return between(f.micro_batch, -1, INT32_MAX - 1) && between(f.chunk, -1, INT32_MAX - 1) &&
                                  between(f.stage, -1, INT32_MAX - 1) && between(f.step, -1, kMaxStepNumber);
                         }) &&
         facts_are_sound(trace, part.transfers,
                         [&](const TransferFact& f) {
                           return slice_or_none(f.op) && between(f.bytes, -1, kMaxReported) && rank(f.src_rank) &&
                                  rank(f.dst_rank);
                         }) &&
         std::ranges::all_of(part.steps,
                             [&](const ProfilerStep& step) {
                               return slice_or_none(step.slice) && sane_interval(step.start_ns, step.end_ns);
                             }) &&
         std::ranges::is_sorted(part.steps, {}, &ProfilerStep::start_ns);
}

bool cells_are_sound(const Trace& trace) {
  const Cells& cells = trace.cells;
  const size_t count = cells.size();
  if (cells.kind.size() != count || cells.chunk.size() != count || cells.micro_batch.size() != count) return false;
  for (size_t i = 0; i < count; ++i)
    if (cells.kind[i] > CellKind::kOther || !sane_interval(cells.start_ns[i], cells.end_ns[i]) ||
        !between(cells.step[i], kUnknown, kMaxStepNumber) || !between(cells.chunk[i], kUnknown, kMaxChunkNumber) ||
        !between(cells.micro_batch[i], kUnknown, kMaxMicroBatchNumber))
      return false;
  return all_below_or_none(cells.slice, trace.parts[0].slices.size());
}

// Checks the sums of the source's own profiler: durations, and −1 where there is none.
bool sums_are_sound(const Part& part) {
  const auto duration = [](int64_t ns) { return between(ns, -1, kMaxTimeNs); };
  for (const StepSummary& s : part.step_summaries)
    for (const int64_t ns : {s.computing_ns, s.communication_ns, s.overlapped_ns, s.communication_not_overlapped_ns,
                             s.free_ns, s.stage_ns, s.bubble_ns, s.not_overlapped_without_receive_ns, s.preparing_ns})
      if (!duration(ns)) return false;
  return std::ranges::all_of(part.link_summaries, [&](const LinkSummary& link) {
    return duration(link.transit_ns) && std::abs(link.bytes) <= kMaxReported &&
           between(link.src_rank, -1, kMaxRankNumber) && between(link.dst_rank, -1, kMaxRankNumber);
  });
}

bool part_is_sound(const Part& part) {
  for (const int32_t number : {part.machine, part.device, part.stage, part.dp})
    if (!between(number, kUnknown, kMaxRankNumber)) return false;
  if (part.stage != kUnknown && part.dp == kUnknown) return false;  // who knows the one knows the other
  for (const CounterSeries& counter : part.counters) {
    if (!std::ranges::all_of(counter.time_ns, sane_time)) return false;
    if (!std::ranges::all_of(counter.value, [](double x) { return std::isfinite(x); })) return false;
  }
  int64_t before = 0;
  for (const SourceRef& file : part.files) {
    if (file.first_offset < before) return false;
    before = file.first_offset;
  }
  return between(part.rank, 0, kMaxRankNumber) && between(part.event_count, 0, kMaxCounted) &&
         sane_time(part.base_time_ns) && std::ranges::all_of(part.reader_numbers, sane_time);
}

}  // namespace

bool is_sound(const Trace& trace) {
  return !trace.format.empty() && trace.clock <= ClockState::kAligned && trace.device_family <= DeviceFamily::kNpu &&
         trace.categories.size() <= kMaxCategories + 1 &&
         std::ranges::all_of(trace.categories,
                             [](const CategoryInfo& category) { return category.kind <= Category::kSpan; }) &&
         part_is_sound(trace.parts[0]) && slices_are_sound(trace) && facts_are_sound(trace) && cells_are_sound(trace) &&
         sums_are_sound(trace.parts[0]);
}

}  // namespace stageline::digest
