#include "base/parallel.h"
#include "server/http/wire.h"
#include "server/timeline/row_index.h"
#include "server/timeline/slice_window.h"

namespace stageline {
namespace {

// With more slices in a column, prefix sums are faster than a walk.
constexpr size_t kWalk = 2 * kBlock;

// The first position from `from` on whose slice ends after t; found with doubling steps, then by halving.
size_t gallop_to_end_after(const ViewLane& lane, const ViewRow& row, size_t from, double t, int64_t t0_ns) {
  const auto ends_before = [&](size_t p) { return lane.end(row.slice_at(p)) - t0_ns <= t; };
  size_t step = kWalk, low = from;
  while (low + step < row.count && ends_before(low + step)) {
    low += step;
    step *= 2;
  }
  return first_not(low, std::min(row.count, low + step), ends_before);
}

class RowWalk {
 public:
  RowWalk(const ViewLane& lane, const ViewRow& row, const TimeWindow& window, size_t columns)
      : lane_(lane), row_(row), t0_(window.from_ns()), skip_(window.t0_ns - t0_),
        column_ns_((window.t1_ns - window.t0_ns) / columns), position_(first_ending_after(lane, row, t0_)) {
    slot_.fill(0);
    for (size_t k = 0; k < row.kinds.size(); ++k) slot_[row.kinds[k]] = static_cast<uint8_t>(k);
  }

  // Adds the time of each kind (in the order of row.kinds) within column c; columns must be asked for in order.
  void column(size_t c, std::array<double, kViewKindCount>& busy) {
    const double left = skip_ + column_ns_ * c;
    const double right = skip_ + column_ns_ * (c + 1);
    for (size_t steps = 0; position_ < row_.count; ++steps) {
      if (steps == kWalk) {
        const size_t to = gallop_to_end_after(lane_, row_, position_, right, t0_);
        KindSums sums{};
        add_busy(lane_, row_, position_, to, sums);
        for (size_t k = 0; k < row_.kinds.size(); ++k) busy[k] += sums[k];
        position_ = to;
        continue;
      }
      const size_t i = row_.slice_at(position_);
      const int64_t start_ns = lane_.start(i) - t0_;
      const double start = start_ns, end = start_ns + drawn_ns(lane_, row_, position_);
      if (start >= right) return;
      busy[slot_[lane_.kind(i)]] += std::max(0.0, std::min(end, right) - std::max(start, left));
      if (end > right) return;
      ++position_;
    }
  }
  // The first column from c on that the next slice may touch; `columns` where no slice is left.
  size_t next_column(size_t c, size_t columns) const {
    if (position_ >= row_.count) return columns;
    const double ahead = (lane_.start(row_.slice_at(position_)) - t0_) - skip_;
    const double at = std::floor(ahead / column_ns_) - 1;  // rounding may be off by one column
    return at <= c ? c : at >= columns ? columns : static_cast<size_t>(at);
  }
  double column_ns() const { return column_ns_; }
  bool nothing_before(const TimeWindow& window) const {
    return position_ >= row_.count || lane_.start(row_.slice_at(position_)) >= window.t1_ns;
  }

 private:
  const ViewLane& lane_;
  const ViewRow& row_;
  int64_t t0_;   // the times below count from here, so that doubles are exact
  double skip_;  // the left edge of the first column
  double column_ns_;
  size_t position_;
  std::array<uint8_t, kViewKindCount> slot_;
};

}  // namespace

std::vector<KindCoverage> row_coverage(const ViewLane& lane, const ViewRow& row, const TimeWindow& window,
                                       size_t columns) {
  std::vector<KindCoverage> out;
  RowWalk walk(lane, row, window, columns);
  if (walk.nothing_before(window)) return out;
  const size_t kinds = row.kinds.size();
  std::vector<std::vector<uint8_t>> shares(kinds);
  std::array<double, kViewKindCount> busy, carry{};
  for (size_t c = walk.next_column(0, columns); c < columns; c = walk.next_column(c + 1, columns)) {
    busy.fill(0);
    walk.column(c, busy);
    for (size_t k = 0; k < kinds; ++k) {
      if (busy[k] <= 0 && shares[k].empty()) continue;
      if (shares[k].empty()) shares[k].assign(columns, 0);
      const double exact = busy[k] / walk.column_ns() * 255 + carry[k];
      const double drawn = std::clamp(std::round(exact), 0.0, 255.0);
      carry[k] = exact - drawn;
      shares[k][c] = static_cast<uint8_t>(drawn);
    }
  }
  for (size_t k = 0; k < kinds; ++k)
    if (!shares[k].empty()) out.push_back({row.kinds[k], std::move(shares[k])});
  return out;
}

Result<std::string> tiles_answer(const Timeline& timeline, const Query& query) {
  TRY(lanes, list_parameter(query, "lanes", static_cast<uint32_t>(timeline.lanes().size())));
  TRY(window, window_parameters(query, timeline.span_ns()));
  TRY(n, integer_parameter(query, "n", std::nullopt, 1, kMaxTileColumns));
  const size_t columns = *n;

  struct Asked {
    uint32_t lane, row;
    std::vector<KindCoverage> kinds;
  };
  std::vector<Asked> rows;
  size_t max_bytes = 0;
  for (const uint32_t l : *lanes)
    for (uint32_t r = 0; r < timeline.lanes()[l].rows.size(); ++r) {
      rows.push_back({l, r, {}});
      max_bytes += timeline.lanes()[l].rows[r].kinds.size() * (columns + 8) + 64;
    }
  if (max_bytes > kMaxTileBytes)
    return make_error(ErrorCode::kLimit, "too many rows and columns in one request", "ask for fewer lanes at once");
  parallel_for(rows.size(), [&](size_t i) {
    const ViewLane& lane = timeline.lanes()[rows[i].lane];
    rows[i].kinds = row_coverage(lane, lane.rows[rows[i].row], *window, columns);
  });

  WireColumns wire;
  JsonWriter json;
  json.begin_object().field("t0", window->t0_ns).field("t1", window->t1_ns).field("n", *n);
  json.objects("rows", rows, [&](const Asked& row) {
    json.field("lane", row.lane).field("row", row.row).objects("kinds", row.kinds, [&](const KindCoverage& one) {
      const size_t offset = wire.add_bytes({reinterpret_cast<const char*>(one.share.data()), one.share.size()});
      json.field("kind", one.kind).field("offset", offset);
    });
  });
  json.end_object();
  return std::move(wire).with_header(json.text());
}

}  // namespace stageline
