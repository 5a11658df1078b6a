#include "server/selection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <tuple>

#include "base/json_writer.h"
#include "base/number.h"
#include "base/parallel.h"
#include "server/duration_bins.h"
#include "server/row_index.h"
#include "server/slice_window.h"

namespace stageline {
namespace {

constexpr size_t kPiece = size_t{1} << 16;  // slices that one task looks at
constexpr uint32_t kNone = UINT32_MAX;

// Slices of one row that touch the area.
struct RowPiece {
  const ViewLane* lane;
  size_t row, from, to;
};

// Sums by (name, kind), grown as names come; with_bins: and their durations in bins, of the first kMostBinned.
class Totals {
 public:
  static constexpr size_t kMostBinned = 1024;  // of 7 kB each
  explicit Totals(size_t name_count, bool with_bins = false) : first_(name_count, kNone), with_bins_(with_bins) {}

  uint32_t place_of(StringId name, uint8_t kind) {
    uint32_t at = first_[name];
    while (at != kNone && all_[at].kind != kind) at = next_[at];
    if (at == kNone) {
      at = static_cast<uint32_t>(all_.size());
      all_.push_back({name, kind, 0, 0, 0, 0, INT64_MAX, -1, -1, 0});
      next_.push_back(first_[name]);
      first_[name] = at;
      if (with_bins_ && at < kMostBinned) bins_.emplace_back(kDurationBins);
    }
    return at;
  }
  SelectionTotal& of(StringId name, uint8_t kind) { return all_[place_of(name, kind)]; }
  SelectionTotal& at(uint32_t place) { return all_[place]; }
  void count(uint32_t place, int64_t dur_ns) {
    if (place < bins_.size()) ++bins_[place][duration_bin(dur_ns)];
  }
  bool has_all_bins() const { return bins_.size() == all_.size(); }
  const std::vector<uint32_t>& bins(uint32_t place) const { return bins_[place]; }
  // Place of what is there already; kNone.
  uint32_t find(StringId name, uint8_t kind) const {
    uint32_t at = first_[name];
    while (at != kNone && all_[at].kind != kind) at = next_[at];
    return at;
  }
  std::vector<SelectionTotal>& all() { return all_; }

 private:
  std::vector<uint32_t> first_, next_;  // by name; by place: the next of the same name
  std::vector<SelectionTotal> all_;
  std::vector<std::vector<uint32_t>> bins_;  // by place
  bool with_bins_;
};

void add(int64_t& sum, int64_t value) { sum = sum_or_limit(sum, value); }

void sum_piece(const RowPiece& piece, int64_t t0, int64_t t1, Totals& totals) {
  const ViewLane& lane = *piece.lane;
  const ViewRow& row = lane.rows[piece.row];
  const size_t top = first_row_above(lane, piece.row);
  std::array<size_t, kMaxRowsOfLane> above{};  // by row: positions that started at or before the slice
  std::array<bool, kMaxRowsOfLane> placed{};
  for (size_t p = piece.from; p < piece.to; ++p) {
    const size_t i = row.slice_at(p);
    const int64_t start = lane.start(i), dur = lane.dur(i), end = start + dur;
    const int64_t inside = std::max<int64_t>(0, std::min(end, t1) - std::max(start, t0));
    const uint32_t place = totals.place_of(lane.names[i], lane.kind(i));
    totals.count(place, dur);
    SelectionTotal& own = totals.at(place);
    ++own.count;
    add(own.sum_ns, inside);
    add(own.self_ns, inside);
    add(own.whole_ns, dur);
    own.min_ns = std::min(own.min_ns, dur);
    own.max_ns = std::max(own.max_ns, dur);
    for (size_t r = piece.row; r-- > top;) {
      const ViewRow& over = lane.rows[r];
      if (!placed[r]) above[r] = first_starting_from(lane, over, start + 1);
      placed[r] = true;
      while (above[r] < over.count && lane.start(over.slice_at(above[r])) <= start) ++above[r];
      if (above[r] == 0) continue;
      const size_t holder = over.slice_at(above[r] - 1);
      if (lane.end(holder) < end) continue;
      add(totals.of(lane.names[holder], lane.kind(holder)).self_ns, -inside);
      break;
    }
  }
}

std::vector<RowPiece> pieces_of(const Timeline& timeline, const std::vector<uint32_t>& lanes, int64_t t0, int64_t t1) {
  std::vector<RowPiece> pieces;
  for (const uint32_t l : lanes) {
    const ViewLane& lane = timeline.lanes()[l];
    for (size_t r = 0; r < lane.rows.size(); ++r) {
      size_t from = first_ending_after(lane, lane.rows[r], t0);
      while (from > 0 && lane.start(lane.rows[r].slice_at(from - 1)) >= t0) --from;  // instants
      const size_t to = first_starting_from(lane, lane.rows[r], t1);
      for (; from < to; from += kPiece) pieces.push_back({&lane, r, from, std::min(to, from + kPiece)});
    }
  }
  return pieces;
}

// Work dealt out to as many tasks as there are threads: pieces k, k + tasks, …
template <class Body>
void deal(size_t tasks, size_t pieces, Body body) {
  parallel_for(tasks, [&](size_t task) {
    for (size_t k = task; k < pieces; k += tasks) body(task, k);
  });
}

void set_quantiles(const std::vector<uint32_t>& bins, SelectionTotal& total) {
  total.median_ns = binned_quantile(bins.data(), total.count, 0.5, total.min_ns, total.max_ns);
  total.p95_ns = binned_quantile(bins.data(), total.count, 0.95, total.min_ns, total.max_ns);
}

// A second pass over the slices, for the names that are shown.
void find_quantiles(const std::vector<RowPiece>& pieces, const Totals& places, size_t tasks, bool exact,
                    std::vector<SelectionTotal>& shown) {
  std::vector<uint32_t> rank_of;  // place in `places` → index in shown
  for (uint32_t k = 0; k < shown.size(); ++k) {
    const uint32_t at = places.find(shown[k].name, shown[k].kind);
    if (at >= rank_of.size()) rank_of.resize(at + 1, kNone);
    rank_of[at] = k;
  }
  std::vector<std::vector<std::vector<int64_t>>> kept(tasks);
  std::vector<std::vector<std::vector<uint32_t>>> bins(tasks);
  deal(tasks, pieces.size(), [&](size_t task, size_t k) {
    kept[task].resize(shown.size());
    bins[task].resize(shown.size());
    const ViewLane& lane = *pieces[k].lane;
    const ViewRow& row = lane.rows[pieces[k].row];
    for (size_t p = pieces[k].from; p < pieces[k].to; ++p) {
      const size_t i = row.slice_at(p);
      const uint32_t at = places.find(lane.names[i], lane.kind(i));
      const uint32_t rank = at < rank_of.size() ? rank_of[at] : kNone;
      if (rank == kNone) continue;
      if (exact) {
        kept[task][rank].push_back(lane.dur(i));
        continue;
      }
      std::vector<uint32_t>& own = bins[task][rank];
      if (own.empty()) own.resize(kDurationBins);
      ++own[duration_bin(lane.dur(i))];
    }
  });
  parallel_for(shown.size(), [&](size_t k) {
    SelectionTotal& total = shown[k];
    if (total.count == 0) return;
    if (exact) {
      std::vector<int64_t> all;
      all.reserve(total.count);
      for (const auto& one : kept)
        if (!one.empty()) all.insert(all.end(), one[k].begin(), one[k].end());
      total.median_ns = quantile(all, 0.5);
      total.p95_ns = quantile(all, 0.95);
      return;
    }
    std::vector<uint32_t> all(kDurationBins);
    for (const auto& one : bins)
      for (size_t b = 0; !one.empty() && b < one[k].size(); ++b) all[b] += one[k][b];
    set_quantiles(all, total);
  });
}

}  // namespace

int64_t quantile(std::vector<int64_t>& values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

Selection select_area(const Timeline& timeline, const std::vector<uint32_t>& lanes, const TimeWindow& window,
                      size_t limit) {
  const int64_t t0 = window.from_ns(), t1 = window.to_ns();
  const std::vector<RowPiece> pieces = pieces_of(timeline, lanes, t0, t1);
  const size_t name_count = timeline.trace().names.size();
  const size_t tasks = std::min(std::max<size_t>(1, pieces.size()), static_cast<size_t>(thread_count()));
  size_t touched = 0;
  for (const RowPiece& piece : pieces) touched += piece.to - piece.from;
  const bool exact = touched <= kExactQuantiles;
  std::vector<std::unique_ptr<Totals>> own(tasks);
  deal(tasks, pieces.size(), [&](size_t task, size_t k) {
    if (!own[task]) own[task] = std::make_unique<Totals>(name_count, !exact);
    sum_piece(pieces[k], t0, t1, *own[task]);
  });
  Totals totals(name_count);
  for (const auto& one : own) {
    if (!one) continue;
    for (const SelectionTotal& t : one->all()) {
      SelectionTotal& sum = totals.of(t.name, t.kind);
      sum.count += t.count;
      add(sum.sum_ns, t.sum_ns);
      add(sum.self_ns, t.self_ns);
      add(sum.whole_ns, t.whole_ns);
      sum.min_ns = std::min(sum.min_ns, t.min_ns);
      sum.max_ns = std::max(sum.max_ns, t.max_ns);
    }
  }
  Selection out;
  for (SelectionTotal total : totals.all()) {
    if (total.count == 0) continue;
    total.self_ns = std::max<int64_t>(0, total.self_ns);  // overlapping slices may take more than there is
    out.slice_count += total.count;
    out.totals.push_back(total);
  }
  std::sort(out.totals.begin(), out.totals.end(), [](const SelectionTotal& a, const SelectionTotal& b) {
    return std::tuple(-a.sum_ns, a.name, a.kind) < std::tuple(-b.sum_ns, b.name, b.kind);
  });
  if (out.totals.size() > limit) {
    out.left_out = out.totals.size() - limit;
    out.totals.resize(limit);
  }
  out.exact = exact;
  const bool all_binned =
      !exact && std::all_of(own.begin(), own.end(), [](const auto& one) { return !one || one->has_all_bins(); });
  if (all_binned) {
    parallel_for(out.totals.size(), [&](size_t k) {
      std::vector<uint32_t> bins(kDurationBins);
      for (const auto& one : own) {
        const uint32_t place = one ? one->find(out.totals[k].name, out.totals[k].kind) : kNone;
        if (place == kNone) continue;
        for (size_t b = 0; b < bins.size(); ++b) bins[b] += one->bins(place)[b];
      }
      set_quantiles(bins, out.totals[k]);
    });
  } else {
    find_quantiles(pieces, totals, tasks, exact, out.totals);
  }
  return out;
}

Result<std::string> select_answer(const Timeline& timeline, const Query& query) {
  const auto lanes = list_parameter(query, "lanes", static_cast<uint32_t>(timeline.lanes().size()));
  if (!lanes) return lanes.error();
  const auto window = window_parameters(query, timeline.span_ns());
  if (!window) return window.error();
  const auto limit = integer_parameter(query, "limit", 500, 1, 2000);
  if (!limit) return limit.error();
  const Selection area = select_area(timeline, *lanes, *window, static_cast<size_t>(*limit));
  JsonWriter json;
  json.begin_object().field("t0", window->t0_ns).field("t1", window->t1_ns);
  json.field("slices", static_cast<int64_t>(area.slice_count)).field("left_out", static_cast<int64_t>(area.left_out));
  json.field("exact", area.exact).key("rows").begin_array();
  for (const SelectionTotal& t : area.totals) {
    json.begin_object().field("name_id", int64_t{t.name});
    json.field("name", short_name(timeline.trace().names.text(t.name))).field("kind", int64_t{t.kind});
    json.field("count", static_cast<int64_t>(t.count)).field("sum_ns", t.sum_ns).field("self_ns", t.self_ns);
    const double mean_ns = static_cast<double>(t.whole_ns) / static_cast<double>(t.count);
    json.field("mean_ns", static_cast<int64_t>(std::llround(mean_ns)));
    json.field("min_ns", t.min_ns).field("median_ns", t.median_ns).field("p95_ns", t.p95_ns);
    json.field("max_ns", t.max_ns).end_object();
  }
  json.end_array().end_object();
  return json.take();
}

}  // namespace stageline
