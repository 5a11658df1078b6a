#include "server/timeline/row_index.h"

namespace stageline {
namespace {

constexpr uint8_t kUnsetRow = UINT8_MAX;
static_assert(kMaxRowsOfLane < kUnsetRow);

bool is_one_row(const ViewLane& lane) {
  for (size_t i = 1; i < lane.count; ++i)
    if (lane.start(i) < lane.end(i - 1)) return false;
  return true;
}

// The rows of a lane while it is laid out.
struct Layout {
  std::vector<uint8_t> row_of;
  std::vector<size_t> counts, clipped;
};

// Lays the slices for which takes(slice) is true out in rows from `top` on.
template <class Takes> void lay_out(ViewLane& lane, size_t top, bool nests, Layout& out, Takes takes) {
  RowFinder rows(top, nests, overlap_of(lane));
  for (size_t i = 0; i < lane.count; ++i) {
    if (!takes(i)) continue;
    const int64_t start = lane.start(i), end = lane.end(i);
    const size_t r = rows.find(start, end);
    if (r >= kMaxRowsOfLane) {
      ++lane.hidden;
      continue;
    }
    const bool overlaps = rows.put(r, start, end, RowFinder::kNoTag);
    out.counts.resize(std::max(out.counts.size(), rows.end_row()));
    out.clipped.resize(out.counts.size());
    out.row_of[i] = static_cast<uint8_t>(r);
    ++out.counts[r];
    out.clipped[r] += overlaps ? 1 : 0;
  }
}

void lay_out(ViewLane& lane) {
  Layout out{std::vector<uint8_t>(lane.count, kUnsetRow), {}, {}};
  const auto is_range = [&](size_t i) { return lane.kind(i) == static_cast<uint8_t>(ViewKind::kAnnotation); };
  if (lane.type == ViewLaneType::kStream) {
    // A stream's work is in its first row, whatever ranges the user has set, so that white there means an idle device.
    lay_out(lane, 0, false, out, [&](size_t i) { return !is_range(i); });
    lane.range_row = out.counts.size();
    lay_out(lane, lane.range_row, true, out, is_range);
  } else {
    lay_out(lane, 0, !lane.cells, out, [](size_t) { return true; });
    lane.range_row = out.counts.size();
  }
  lane.rows.resize(out.counts.size());
  for (size_t i = 0; i < lane.count; ++i)
    if (out.row_of[i] != kUnsetRow) lane.rows[out.row_of[i]].order.push(static_cast<uint32_t>(i));
  if (lane.rows.size() == 1 && lane.hidden == 0) lane.rows[0].order = {};
  for (size_t r = 0; r < lane.rows.size(); ++r) {
    lane.rows[r].order.finish();
    lane.rows[r].count = out.counts[r];
    lane.rows[r].clipped = out.clipped[r];
  }
}

void make_checkpoints(const ViewLane& lane, ViewRow& row) {
  uint32_t present = 0;
  for (size_t p = 0; p < row.count; ++p) present |= uint32_t{1} << lane.kind(row.slice_at(p));
  std::array<uint8_t, kViewKindCount> slot{};
  for (uint8_t k = 0; k < kViewKindCount; ++k)
    if (present & uint32_t{1} << k) {
      slot[k] = static_cast<uint8_t>(row.kinds.size());
      row.kinds.push_back(k);
    }
  const size_t blocks = (row.count + kBlock - 1) / kBlock, kinds = row.kinds.size();
  row.busy_ns.reserve((blocks + 1) * kinds);
  row.longest_2.reserve(blocks);
  KindSums sums{};
  for (size_t b = 0; b <= blocks; ++b) {
    row.busy_ns.insert(row.busy_ns.end(), sums.begin(), sums.begin() + kinds);
    if (b == blocks) break;
    int64_t longest = 0;
    for (size_t p = b * kBlock; p < std::min(row.count, (b + 1) * kBlock); ++p) {
      const size_t i = row.slice_at(p);
      sums[slot[lane.kind(i)]] += drawn_ns(lane, row, p);
      longest = std::max(longest, lane.dur(i));
    }
    row.longest_2.push_back(static_cast<uint8_t>(std::bit_width(static_cast<uint64_t>(longest))));
  }
}

template <class Before> size_t first_place_not(const ViewRow& row, Before before) {
  return first_not(0, row.count, [&](size_t position) { return before(row.slice_at(position)); });
}

}  // namespace

void build_rows_of(ViewLane& lane) {
  if (!lane.has_slices() || lane.count == 0) return;
  if (is_one_row(lane)) {
    lane.rows.resize(1);
    lane.range_row = 1;
    lane.rows[0].count = lane.count;
  } else {
    lay_out(lane);
  }
  for (ViewRow& row : lane.rows) make_checkpoints(lane, row);
}

size_t first_ending_after(const ViewLane& lane, const ViewRow& row, int64_t t_ns) {
  return first_place_not(row, [&](size_t i) { return lane.end(i) <= t_ns; });
}

size_t first_starting_from(const ViewLane& lane, const ViewRow& row, int64_t t_ns) {
  return first_place_not(row, [&](size_t i) { return lane.start(i) < t_ns; });
}

size_t first_starting_from(const ViewLane& lane, int64_t t_ns) {
  return first_not(0, lane.count, [&](size_t i) { return lane.start(i) < t_ns; });
}

size_t first_slice_from(const ViewRow& row, size_t slice) {
  return first_place_not(row, [&](size_t i) { return i < slice; });
}

void add_busy(const ViewLane& lane, const ViewRow& row, size_t from, size_t to, KindSums& sums) {
  const size_t kinds = row.kinds.size();
  const auto scan = [&](size_t begin, size_t end) {
    for (size_t p = begin; p < end; ++p) {
      const uint8_t kind = lane.kind(row.slice_at(p));
      size_t k = 0;
      while (row.kinds[k] != kind) ++k;
      sums[k] += drawn_ns(lane, row, p);
    }
  };
  const size_t first_block = (from + kBlock - 1) / kBlock, last_block = to / kBlock;
  if (first_block >= last_block) return scan(from, to);
  scan(from, first_block * kBlock);
  for (size_t k = 0; k < kinds; ++k)
    sums[k] += row.busy_ns[last_block * kinds + k] - row.busy_ns[first_block * kinds + k];
  scan(last_block * kBlock, to);
}

PlaceInRow row_place(const ViewLane& lane, size_t slice) {
  for (size_t r = 0; r < lane.rows.size(); ++r) {
    const ViewRow& row = lane.rows[r];
    const size_t position = first_slice_from(row, slice);
    if (position < row.count && row.slice_at(position) == slice) return {r, position};
  }
  return {};
}

size_t enclosing_slice(const ViewLane& lane, PlaceInRow place) {
  if (!nests(lane, place.row)) return SIZE_MAX;
  const size_t slice = lane.rows[place.row].slice_at(place.position);
  size_t latest = SIZE_MAX;
  for (size_t r = lane.type == ViewLaneType::kStream ? lane.range_row : 0; r < place.row; ++r) {
    const size_t after = first_slice_from(lane.rows[r], slice);
    if (after == 0) continue;
    const size_t above = lane.rows[r].slice_at(after - 1);
    if (lane.end(above) >= lane.end(slice) && lane.end(above) > lane.start(slice) &&
        (latest == SIZE_MAX || above > latest))
      latest = above;
  }
  return latest;
}

}  // namespace stageline
