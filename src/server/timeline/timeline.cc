#include "server/timeline/timeline.h"

#include "base/parallel.h"
#include "model/intervals.h"
#include "server/timeline/name_index.h"
#include "server/timeline/row_index.h"
#include "server/timeline/timeline_sums.h"

namespace stageline {

const char* lane_type_name(ViewLaneType type) {
  static constexpr auto kTexts =
      texts_by<ViewLaneType::kCounter, const char*>({"cells", "stream", "thread", "counter"});
  return kTexts[type];
}

Timeline::Timeline(const Trace& trace) : trace_(trace), names_(trace.names), kind_table_(slice_kinds(trace)) {
  slice_lanes_.resize(trace_.parts.size());
  add_cell_lanes();
  add_slice_lanes();
  add_counter_lanes();
  set_zeros();
  sort_lanes();
  find_repeats();
  build_rows();
  find_steps();
  occurrences_ = std::make_unique<NameIndex>(lanes_, names_.size());
  name_kinds_ = std::make_unique<NameKinds>(lanes_, names_.size());
}

Timeline::~Timeline() = default;

const AreaSums& Timeline::area_sums() const {
  std::call_once(area_sums_once_, [&] { area_sums_ = std::make_unique<AreaSums>(lanes_, *name_kinds_); });
  return *area_sums_;
}

const DurationCounts& Timeline::duration_counts() const {
  std::call_once(duration_counts_once_,
                 [&] { duration_counts_ = std::make_unique<DurationCounts>(lanes_, *name_kinds_); });
  return *duration_counts_;
}

namespace {

// Sends and receives of a rank have separate lanes: a receive includes waiting for the peer, and in one lane with sends
// it would look like traffic.
constexpr std::array<const char*, 5> kCellLanes = {"compute", "sends", "receives", "collectives", "other"};
size_t cell_lane(CellKind kind) {
  if (is_send(kind)) return 1;
  if (is_message(kind)) return 2;
  const int lane = kind_lane(kind);  // 1 are messages
  return lane == 0 ? 0 : lane + 1;
}

}  // namespace

// The name of a cell is its kind if that and the micro-batch identify it, else its source slice's name.
void Timeline::add_cell_lanes() {
  const Cells& cells = trace_.cells;
  std::array<StringId, kCellKindCount> code{}, spoken{};
  for (size_t k = 0; k < kCellKindCount && cells.size() > 0; ++k) {
    code[k] = names_.intern(kind_code(static_cast<CellKind>(k)));
    spoken[k] = names_.intern(kind_name(static_cast<CellKind>(k)));
  }
  std::vector<std::vector<RankRange>> of_part(trace_.parts.size());
  for (const RankRange& range : rank_ranges(cells)) of_part[range.part].push_back(range);
  std::vector<std::vector<uint32_t>> groups(of_part.size() * kCellLanes.size());
  std::vector<int32_t> last_chunk(of_part.size(), kUnknown);
  parallel_for(of_part.size(), [&](size_t p) {
    for (const RankRange& range : of_part[p])
      for (size_t i = range.begin; i < range.end; ++i) {
        groups[p * kCellLanes.size() + cell_lane(cells.kind[i])].push_back(static_cast<uint32_t>(i));
        last_chunk[p] = std::max(last_chunk[p], cells.chunk[i]);
      }
  });
  for (const int32_t chunk : last_chunk) chunk_count_ = std::max(chunk_count_, int64_t{chunk} + 1);
  std::vector<ViewLane> lanes(groups.size());
  parallel_for(groups.size(), [&](size_t g) {
    std::vector<uint32_t>& own = groups[g];
    if (own.empty()) return;
    const auto before = [&](uint32_t a, uint32_t b) {
      return std::tuple(cells.start_ns[a], cells.end_ns[b], a) < std::tuple(cells.start_ns[b], cells.end_ns[a], b);
    };
    if (!std::ranges::is_sorted(own, before)) std::ranges::sort(own, before);
    ViewLane& lane = lanes[g];
    lane.part = static_cast<uint32_t>(g / kCellLanes.size());
    lane.type = ViewLaneType::kCells;
    lane.name = kCellLanes[g % kCellLanes.size()];
    lane.count = own.size();
    lane.cells = std::make_unique<CellColumns>();
    CellColumns& columns = *lane.cells;
    columns.start_ns.reserve(own.size());
    columns.dur_ns.reserve(own.size());
    columns.name_id.reserve(own.size());
    columns.kind.reserve(own.size());
    for (const uint32_t i : own) {
      const auto kind = static_cast<size_t>(cells.kind[i]);
      const bool plain = is_compute(cells.kind[i]) || is_message(cells.kind[i]);
      columns.start_ns.push_back(cells.start_ns[i]);
      int64_t dur = 0;
      if (__builtin_sub_overflow(cells.end_ns[i], cells.start_ns[i], &dur)) dur = kLatestNs;
      columns.dur_ns.push_back(dur);
      StringId name = plain ? code[kind] : spoken[kind];
      if (!plain && cells.slice[i] != kNoSlice) name = trace_.parts[lane.part].slices.name_id[cells.slice[i]];
      columns.name_id.push_back(name);
      columns.kind.push_back(static_cast<uint8_t>(kind));
    }
    columns.cell = std::move(own);
    lane.starts = columns.start_ns.data();
    lane.durations = columns.dur_ns.data();
    lane.names = columns.name_id.data();
    lane.own_kinds = columns.kind.data();
  });
  for (ViewLane& lane : lanes)
    if (lane.count > 0) lanes_.push_back(std::move(lane));
}

// Adds threads and streams of profiler traces. Slices of other sources are drawn as the cells that were read from them.
void Timeline::add_slice_lanes() {
  for (uint32_t p = 0; p < trace_.parts.size(); ++p) {
    const Part& part = trace_.parts[p];
    if (part.event_count == 0 && trace_.cells.size() > 0) continue;
    const Slices& s = part.slices;
    for (const Lane& from : part.lanes) {
      if (from.begin >= from.end) continue;
      ViewLane lane{.part = p,
                    .type = from.kind == LaneKind::kDeviceStream ? ViewLaneType::kStream : ViewLaneType::kThread,
                    .name = from.name,
                    .first = from.begin,
                    .count = from.end - from.begin,
                    .starts = s.start_ns.data() + from.begin,
                    .durations = s.dur_ns.data() + from.begin,
                    .names = s.name_id.data() + from.begin};
      if (s.has_facts()) {
        lane.categories = s.category_id.data() + from.begin;
        lane.classes = s.kernel_class.data() + from.begin;
        lane.kind_table = kind_table_.data();
      }
      if (!part.flight_calls.empty()) lane.only_kind = static_cast<uint8_t>(ViewKind::kCommunication);
      lanes_.push_back(std::move(lane));
    }
  }
}

void Timeline::add_counter_lanes() {
  for (size_t p = 0; p < trace_.parts.size(); ++p)
    for (const CounterSeries& series : trace_.parts[p].counters) {
      if (series.time_ns.empty() || !std::ranges::is_sorted(series.time_ns)) continue;
      lanes_.push_back({.part = static_cast<uint32_t>(p),
                        .type = ViewLaneType::kCounter,
                        .name = series.name,
                        .count = series.time_ns.size(),
                        .starts = series.time_ns.data(),
                        .counter = &series});
    }
}

void Timeline::set_zeros() {
  std::vector<int64_t> first(trace_.parts.size(), INT64_MAX);
  for (const ViewLane& lane : lanes_) first[lane.part] = std::min(first[lane.part], lane.starts[0]);
  const int64_t earliest = first.empty() ? INT64_MAX : *std::ranges::min_element(first);
  origin_ns_ = earliest == INT64_MAX ? 0 : earliest;
  zero_.assign(trace_.parts.size(), origin_ns_);
  if (trace_.clock == ClockState::kPerRank && !trace_.steps_laid_end_to_end)
    for (size_t p = 0; p < zero_.size(); ++p) zero_[p] = first[p] == INT64_MAX ? origin_ns_ : first[p];
  for (ViewLane& lane : lanes_) lane.zero_ns = zero_[lane.part];
}

// Sorts lanes by rank; within a rank, cells come first, then streams, threads and counters.
void Timeline::sort_lanes() {
  sort_stably(lanes_, [](const ViewLane& a, const ViewLane& b) {
    return std::pair(a.part, a.type) < std::pair(b.part, b.type);
  });
  for (uint32_t l = 0; l < lanes_.size(); ++l) {
    const ViewLane& lane = lanes_[l];
    if (!lane.cells && lane.has_slices()) slice_lanes_[lane.part].push_back({lane.first, lane.first + lane.count, l});
  }
  for (std::vector<SliceLane>& own : slice_lanes_) std::ranges::sort(own, {}, &SliceLane::begin);
}

// Ascend's profiler writes a message three times: as an operation in its group's lane, as that operation's tasks on
// streams, and as the cell that was read from the operation. It is drawn once unless someone asks for more. So streams
// that have only tasks of operations, and lanes of groups whose operations are all messages with a cell, are marked as
// repeats.
void Timeline::find_repeats() {
  const auto category = [&](const ViewLane& lane, size_t i) {
    return lane.categories ? trace_.categories[lane.categories[i]].kind : Category::kOther;
  };
  const auto all = [&](const ViewLane& lane, const auto& holds) {
    for (size_t i = 0; i < lane.count; ++i)
      if (!holds(i)) return false;
    return true;
  };
  std::vector<bool> has_tasks(trace_.parts.size());
  for (const ViewLane& lane : lanes_)
    if (lane.type == ViewLaneType::kStream && category(lane, 0) == Category::kDeviceTask) has_tasks[lane.part] = true;
  if (std::ranges::find(has_tasks, true) == has_tasks.end()) return;
  std::vector<std::vector<bool>> drawn(trace_.parts.size());  // slices from which a message's cell was read
  const Cells& cells = trace_.cells;
  for (size_t c = 0; c < cells.size(); ++c) {
    const size_t part = cells.part[c];
    if (!is_message(cells.kind[c]) || cells.slice[c] == kNoSlice || !has_tasks[part]) continue;
    drawn[part].resize(trace_.parts[part].slices.size());
    drawn[part][cells.slice[c]] = true;
  }
  for (ViewLane& lane : lanes_) {
    if (lane.type != ViewLaneType::kStream || !has_tasks[lane.part]) continue;
    const std::vector<bool>& own = drawn[lane.part];
    lane.repeats = category(lane, 0) == Category::kDeviceTask
                       ? all(lane, [&](size_t i) { return category(lane, i) == Category::kDeviceTask; })
                       : all(lane, [&](size_t i) { return lane.first + i < own.size() && own[lane.first + i]; });
  }
}

void Timeline::build_rows() {
  std::vector<uint32_t> kinds(lanes_.size());
  parallel_for(lanes_.size(), [&](size_t l) {
    ViewLane& lane = lanes_[l];
    build_rows_of(lane);
    lane.start_ns = lane.relative(lane.starts[0]);
    lane.end_ns = lane.start_ns;
    if (lane.has_slices()) {
      for (const ViewRow& row : lane.rows) {
        lane.end_ns = std::max(lane.end_ns, lane.end(row.slice_at(row.count - 1)));
        for (const uint8_t kind : row.kinds) kinds[l] |= uint32_t{1} << kind;
      }
      if (lane.hidden == 0 && std::has_single_bit(kinds[l]))
        lane.only_kind = static_cast<uint8_t>(std::countr_zero(kinds[l]));
      for (size_t r = 0; r < lane.rows.size(); ++r)
        if (std::ranges::any_of(lane.rows[r].longest_2, [](uint8_t bits) { return bits > 0; }))
          lane.lasting_rows = r + 1;
      const int64_t min_ns = *std::min_element(lane.durations, lane.durations + lane.count);
      lane.is_plain = min_ns >= 0 && lane.hidden == 0 && lane.end_ns < kLatestNs;
    } else {
      lane.end_ns = lane.relative(lane.starts[lane.count - 1]);
    }
  });
  uint64_t cells = 0;
  for (size_t l = 0; l < lanes_.size(); ++l) {
    span_ns_ = std::max(span_ns_, lanes_[l].end_ns);
    kinds_present_ |= kinds[l];
    if (lanes_[l].has_slices()) (lanes_[l].type == ViewLaneType::kCells ? cells : slice_count_) += lanes_[l].count;
  }
  if (slice_count_ == 0) slice_count_ = cells;
}

// The steps of the cells where these have any, else the profiler's steps; each from the first start on any rank to the
// last end.
void Timeline::find_steps() {
  std::map<int64_t, ViewStep> steps;
  ViewStep* last = nullptr;  // cells of one step lie side by side
  const auto add = [&](int64_t number, size_t part, int64_t start_ns, int64_t end_ns) {
    const int64_t start = relative_ns(start_ns, zero_[part]), end = std::max(start, relative_ns(end_ns, zero_[part]));
    if (!last || last->number != number) last = &steps.try_emplace(number, ViewStep{number, start, end}).first->second;
    last->start_ns = std::min(last->start_ns, start);
    last->end_ns = std::max(last->end_ns, end);
  };
  const Cells& cells = trace_.cells;
  const std::vector<RankRange> ranges = rank_ranges(cells);
  std::vector<Span> spans(ranges.size());
  parallel_for(ranges.size(), [&](size_t r) {
    for (size_t i = ranges[r].begin; i < ranges[r].end; ++i)
      spans[r].add(cells.start_ns[i], std::max(cells.start_ns[i], cells.end_ns[i]));
  });
  for (size_t r = 0; r < ranges.size(); ++r)
    if (ranges[r].step != kUnknown) add(ranges[r].step, ranges[r].part, spans[r].start_ns, spans[r].end_ns);
  if (steps.empty())
    for (size_t p = 0; p < trace_.parts.size(); ++p)
      for (const ProfilerStep& step : trace_.parts[p].steps) {
        add(step.number, p, step.start_ns, step.end_ns);
        last->sum_ns += static_cast<double>(step.end_ns - step.start_ns), ++last->ranges;
      }
  for (const auto& [number, step] : steps) steps_.push_back(step);
  sort_stably(steps_, {}, &ViewStep::start_ns);
}

SlicePlace Timeline::place_of_slice(uint32_t part, uint32_t slice) const {
  if (part >= slice_lanes_.size()) return {};
  const std::vector<SliceLane>& own = slice_lanes_[part];
  auto after = std::upper_bound(own.begin(), own.end(), size_t{slice},
                                [](size_t wanted, const SliceLane& lane) { return wanted < lane.begin; });
  if (after == own.begin() || slice >= (after - 1)->end) return {};
  return {(after - 1)->lane, static_cast<uint32_t>(slice - (after - 1)->begin)};
}

SlicePlace Timeline::place_of_cell(uint32_t cell) const {
  std::call_once(cell_places_once_, [&] {
    cell_places_.resize(trace_.cells.size());
    parallel_for(lanes_.size(), [&](size_t l) {
      const ViewLane& lane = lanes_[l];
      if (!lane.cells) return;
      for (uint32_t i = 0; i < lane.count; ++i) cell_places_[lane.cells->cell[i]] = {static_cast<uint32_t>(l), i};
    });
  });
  return cell < cell_places_.size() ? cell_places_[cell] : SlicePlace{};
}

}  // namespace stageline
