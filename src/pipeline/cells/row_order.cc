#include "pipeline/cells/range_rows.h"

namespace stageline {
namespace {

constexpr uint64_t kUp = uint64_t{1} << 63;  // set for backward work; within one direction, places ascend in time
constexpr int kPlaceBits = 31;

uint64_t place_of(bool up, int32_t micro_batch, int32_t order) {
  return (up ? kUp : 0) | static_cast<uint64_t>(micro_batch) << kPlaceBits | order;
}

// Returns a number for the clock of a part: one clock for all parts, for a machine, or for the part alone.
int32_t clock_of(const Trace& trace, size_t part) {
  if (trace.clock == ClockState::kShared) return 0;
  const int32_t machine = trace.parts[part].machine;
  return machine != kUnknown ? machine : -2 - static_cast<int32_t>(part);
}

// Returns true when both parts are stamped by one clock.
bool share_clock(const Trace& trace, size_t a, size_t b) { return clock_of(trace, a) == clock_of(trace, b); }

}  // namespace

std::vector<int32_t> pipeline_of_parts(const Trace& trace) {
  std::vector<int32_t> out(trace.parts.size(), kUnknown);
  std::map<std::pair<int32_t, int32_t>, int32_t> seen;    // (dp, stage) → how many ranks were seen
  std::map<std::pair<int32_t, int32_t>, int32_t> number;  // (dp, position) → pipeline
  for (size_t p = 0; p < out.size(); ++p) {
    const Part& part = trace.parts[p];
    if (part.stage == kUnknown) continue;
    const int32_t position = seen[{part.dp, part.stage}]++;
    out[p] = number.try_emplace({part.dp, position}, static_cast<int32_t>(number.size())).first->second;
  }
  return out;
}

void RowOrder::stops_of(const RowList& list, uint32_t row, const ExpectedRow& label, std::vector<RowStop>& out) const {
  const int32_t pipeline = pipeline_[list.part];
  if (pipeline == kUnknown || list.step == kUnknown || label.head) return;
  const RangeRow& r = rows_.parts[list.part][row];
  const int32_t last = virtual_stage_count(shape_) - 1;
  for (int a = 0; a < label.action_count; ++a) {
    const Action& action = label.actions[a];
    if (action.kind == CellKind::kWeightGrad) continue;
    const bool up = action.kind != CellKind::kForward;
    const int32_t vstage = virtual_stage(shape_, trace_.parts[list.part].stage, action.chunk);
    out.push_back({static_cast<uint64_t>(pipeline) << 32 | static_cast<uint32_t>(list.step),
                   place_of(up, action.micro_batch, up ? last - vstage : vstage), r.start_ns, r.end_ns, list.part,
                   row});
  }
}

void RowOrder::add(const RowList& list, uint32_t row, const ExpectedRow& label) { stops_of(list, row, label, stops_); }

void RowOrder::finish() {
  sort_stably(stops_, {}, [](const RowStop& a) { return std::tie(a.way, a.place, a.part, a.row); });
}

const RowStop* RowOrder::find(uint64_t way, uint64_t place) const {
  const auto at =
      std::lower_bound(stops_.begin(), stops_.end(), std::pair(way, place),
                       [](const RowStop& s, const auto& wanted) { return std::pair(s.way, s.place) < wanted; });
  return at != stops_.end() && at->way == way && at->place == place ? &*at : nullptr;
}

RowOrder::Verdict RowOrder::check() const {
  struct Bounds {  // bounds on how far the second clock is ahead of the first
    int64_t min = INT64_MIN, max = INT64_MAX, pairs = 0;
  };
  Verdict out;
  std::map<std::tuple<int32_t, int32_t, uint32_t>, Bounds> between;  // key: both clocks and the step
  for (size_t i = 1; i < stops_.size(); ++i) {
    const RowStop &before = stops_[i - 1], &after = stops_[i];
    if (before.way != after.way || before.place + 1 != after.place) continue;
    ++out.checked;
    const int32_t a = clock_of(trace_, before.part), b = clock_of(trace_, after.part);
    if (a == b) {
      if (before.end_ns <= after.start_ns + kSameHostSlackNs) continue;
      ++out.wrong;
      out.rows.emplace_back(before.part, before.row);
      out.rows.emplace_back(after.part, after.row);
      continue;
    }
    Bounds& bounds = between[{std::min(a, b), std::max(a, b), static_cast<uint32_t>(after.way)}];
    ++bounds.pairs;
    const int64_t room = after.start_ns - before.end_ns;  // cannot overflow, since times are sane
    if (a < b) bounds.max = std::min(bounds.max, room);
    else bounds.min = std::max(bounds.min, -room);
  }
  for (const auto& [clocks, bounds] : between)
    if (bounds.min != INT64_MIN && bounds.max != INT64_MAX && bounds.min > bounds.max + 2 * kSameHostSlackNs)
      out.wrong += bounds.pairs;
  return out;
}

std::pair<int, int> RowOrder::against(const RowList& list, uint32_t row, const ExpectedRow& label) const {
  std::vector<RowStop> own;
  stops_of(list, row, label, own);
  int wrong = 0, seen = 0;
  for (const RowStop& stop : own) {
    const uint64_t order = stop.place & ((uint64_t{1} << kPlaceBits) - 1);
    const RowStop* before = order > 0 ? find(stop.way, stop.place - 1) : nullptr;
    const RowStop* after = find(stop.way, stop.place + 1);
    for (const RowStop* other : {before, after}) {
      if (other == nullptr || !share_clock(trace_, stop.part, other->part)) continue;
      ++seen;
      const RowStop &first = other == before ? *other : stop, &second = other == before ? stop : *other;
      wrong += first.end_ns > second.start_ns + kSameHostSlackNs ? 1 : 0;
    }
  }
  return {wrong, seen};
}

}  // namespace stageline
