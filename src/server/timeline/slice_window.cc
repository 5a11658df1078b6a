#include "server/timeline/slice_window.h"

#include "base/parallel.h"
#include "server/http/wire.h"
#include "server/timeline/row_index.h"

namespace stageline {
namespace {

// Positions [from, to) of a row, which touch the window.
struct SliceStretch {
  uint32_t lane, row;
  size_t from, to;
};

std::vector<SliceStretch> stretches_of(const Timeline& timeline, const std::vector<uint32_t>& lanes,
                                       const TimeWindow& window) {
  std::vector<SliceStretch> out;
  for (const uint32_t l : lanes) {
    const ViewLane& lane = timeline.lanes()[l];
    for (uint32_t r = 0; r < lane.rows.size(); ++r) {
      const ViewRow& row = lane.rows[r];
      size_t from = first_ending_after(lane, row, window.from_ns());
      // A slice of no duration at the left edge ends where it starts, and is still seen.
      while (from > 0 && lane.start(row.slice_at(from - 1)) >= window.from_ns()) --from;
      const size_t to = first_starting_from(lane, row, window.to_ns());
      if (from < to) out.push_back({l, r, from, to});
    }
  }
  return out;
}

// Calls visit(slice) for the slices of a stretch that last at least min_ns; skips blocks that have none.
template <class Visit>
void for_long_slices(const ViewLane& lane, const ViewRow& row, const SliceStretch& s, int64_t min_ns, Visit visit) {
  const auto min_bits = static_cast<uint8_t>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(0, min_ns))));
  for (size_t p = s.from; p < s.to;) {
    const size_t end = std::min(s.to, (p / kBlock + 1) * kBlock);
    if (row.longest_2[p / kBlock] >= min_bits)
      for (size_t q = p; q < end; ++q)
        if (const size_t i = row.slice_at(q); lane.dur(i) >= min_ns) visit(i);
    p = end;
  }
}

// The least power of two that is at least min_ns and leaves at most `limit` slices, or 2^62.
int64_t raised_min(const Timeline& timeline, const std::vector<SliceStretch>& stretches, int64_t min_ns, size_t limit) {
  std::vector<std::array<size_t, 65>> counts(stretches.size());
  parallel_for(stretches.size(), [&](size_t k) {
    const SliceStretch& s = stretches[k];
    const ViewLane& lane = timeline.lanes()[s.lane];
    counts[k].fill(0);
    for_long_slices(lane, lane.rows[s.row], s, min_ns,
                    [&](size_t i) { ++counts[k][std::bit_width(static_cast<uint64_t>(lane.dur(i)))]; });
  });
  std::array<size_t, 65> sums{};
  for (const auto& one : counts)
    for (size_t b = 0; b < one.size(); ++b) sums[b] += one[b];
  const size_t total = sum_over<size_t>(sums);
  if (total <= limit) return min_ns;
  // Durations of b bits begin at 2^(b − 1). Where even the longest are too many, the first of them are kept.
  size_t kept = 0, bits = 64;
  while (bits > 0 && kept + sums[bits - 1] <= limit) kept += sums[--bits];
  if (kept == 0) return std::max(min_ns, bits <= 1 ? int64_t{0} : int64_t{1} << (bits - 2));
  return bits == 0 ? 0 : int64_t{1} << (bits - 1);
}

}  // namespace

SliceWindow slices_within(const Timeline& timeline, const std::vector<uint32_t>& lanes, const TimeWindow& window,
                          int64_t min_ns, size_t limit) {
  const std::vector<SliceStretch> stretches = stretches_of(timeline, lanes, window);
  const size_t touched = sum_over<size_t>(stretches, [](const SliceStretch& s) { return s.to - s.from; });
  SliceWindow out;
  out.min_ns = touched <= limit ? min_ns : raised_min(timeline, stretches, min_ns, limit);
  out.complete = out.min_ns == min_ns;
  for (const SliceStretch& s : stretches) {
    const ViewLane& lane = timeline.lanes()[s.lane];
    for_long_slices(lane, lane.rows[s.row], s, out.min_ns, [&](size_t i) {
      if (out.slices.size() < limit)
        out.slices.push_back({s.lane, static_cast<uint32_t>(i), static_cast<uint8_t>(s.row)});
      else out.complete = false;
    });
  }
  return out;
}

std::string short_name(std::string_view text) { return valid_utf8(cut_text(text, kMaxNameBytes)); }

std::string slices_wire(const Timeline& timeline, const SliceWindow& window) {
  const Trace& trace = timeline.trace();
  std::vector<double> start, dur;
  std::vector<uint32_t> name, lane_id, slice;
  std::vector<uint8_t> kind, row;
  std::vector<int32_t> micro_batch, chunk;
  for (const SliceRow& s : window.slices) {
    const ViewLane& lane = timeline.lanes()[s.lane];
    start.push_back(lane.start(s.slice));
    dur.push_back(lane.dur(s.slice));
    name.push_back(lane.names[s.slice]);
    kind.push_back(lane.kind(s.slice));
    row.push_back(s.row);
    lane_id.push_back(s.lane);
    slice.push_back(s.slice);
    int32_t number = -1, piece = -1;
    if (const uint32_t cell = lane.cell_of(s.slice); cell != kNoSlice) {
      number = trace.cells.micro_batch[cell];
      piece = trace.cells.chunk[cell];
    } else if (const Part& part = trace.parts[lane.part]; !part.ranges.empty()) {
      if (const RangeFact* fact = fact_of(part.ranges, static_cast<uint32_t>(lane.first + s.slice))) {
        number = fact->micro_batch;
        piece = fact->chunk;
      }
    }
    micro_batch.push_back(number);
    chunk.push_back(piece);
  }
  WireColumns wire;
  wire.add("start", "f64", start);
  wire.add("dur", "f64", dur);
  wire.add("name", "u32", name);
  wire.add("kind", "u8", kind);
  wire.add("row", "u8", row);
  wire.add("lane", "u32", lane_id);
  wire.add("slice", "u32", slice);
  wire.add("micro_batch", "i32", micro_batch);
  wire.add("chunk", "i32", chunk);
  JsonWriter json;
  json.begin_object().field("count", window.slices.size());
  json.field("min_ns", window.min_ns).field("complete", window.complete);
  wire.describe(json);
  sort_unique(name);
  json.key("names").begin_array();
  for (const uint32_t id : name)
    json.begin_array().value(int64_t{id}).value(short_name(timeline.names().text(id))).end_array();
  json.end_array().end_object();
  return std::move(wire).with_header(json.text());
}

Result<std::string> slices_answer(const Timeline& timeline, const Query& query) {
  TRY(lanes, list_parameter(query, "lanes", static_cast<uint32_t>(timeline.lanes().size())));
  TRY(window, window_parameters(query, timeline.span_ns()));
  TRY(min_ns, number_parameter(query, "min_ns", 0.0));
  TRY(limit, integer_parameter(query, "limit", 50'000, 1, kMaxSlices));
  const auto min = static_cast<int64_t>(std::clamp(*min_ns, 0.0, 4e18));
  return slices_wire(timeline, slices_within(timeline, *lanes, *window, min, *limit));
}

}  // namespace stageline
