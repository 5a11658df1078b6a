// Whole stretches of an area are added up from the timeline's sums by name (area_sums.h); only what lies at their ends
// is looked at slice by slice. The quantiles of a large area need all durations, and nothing else: a pass that counts
// them in bins, two columns and a few bytes a slice; of more than half the run a pass over the rest, which is taken
// from the counts of the whole.
#include "server/selection.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/json_writer.h"
#include "base/number.h"
#include "base/parallel.h"
#include "server/area_sums.h"
#include "server/duration_bins.h"
#include "server/lane_walk.h"
#include "server/row_index.h"
#include "server/slice_window.h"

namespace stageline {
namespace {

constexpr size_t kPiece = size_t{1} << 14;  // slices that one task looks at
constexpr uint32_t kNone = UINT32_MAX;

// Slices [from, to) of a lane, which start within the area; or a block of its sums.
struct Piece {
  uint32_t lane;
  size_t from, to;
  const SumBlock* block = nullptr;
};
// A slice that began before the area, and what holds it.
struct Early {
  uint32_t lane;
  size_t slice, holder;
};

struct Pieces {
  std::vector<Piece> summed;  // blocks, and the slices between them
  std::vector<Piece> plain;   // the same area without blocks
  std::vector<Piece> others;  // what else the run holds, where the area is more than half of it
  bool is_most = false;
  std::vector<Early> early;
  size_t slices = 0;
};

void add_plain(std::vector<Piece>& pieces, uint32_t lane, size_t from, size_t to) {
  for (; from < to; from += kPiece) pieces.push_back({lane, from, std::min(to, from + kPiece)});
}

Pieces pieces_of(const Timeline& timeline, const std::vector<uint32_t>& lanes, int64_t t0, int64_t t1) {
  Pieces out;
  for (const uint32_t l : lanes) {
    const ViewLane& lane = timeline.lanes()[l];
    if (!lane.has_slices()) continue;
    for (size_t r = 0; r < lane.rows.size(); ++r) {
      const size_t from = first_starting_from(lane, lane.rows[r], t0);
      if (from == 0) continue;
      const size_t slice = lane.rows[r].slice_at(from - 1);
      if (lane.end(slice) > t0) out.early.push_back({l, slice, enclosing_slice(lane, {r, from - 1})});
    }
    size_t from = first_starting_from(lane, t0);
    const size_t to = first_starting_from(lane, t1);
    out.slices += to - from;
    add_plain(out.plain, l, from, to);
    for (const SumBlock& block : timeline.area_sums().blocks(l)) {
      if (block.from < from || block.to > to || block.last_end_ns > t1) continue;
      add_plain(out.summed, l, from, block.from);
      out.summed.push_back({l, block.from, block.to, &block});
      from = block.to;
    }
    add_plain(out.summed, l, from, to);
  }
  return out;
}

// The pieces that a count over the area does not look at.
void add_others(const Timeline& timeline, const std::vector<uint32_t>& lanes, int64_t t0, int64_t t1, Pieces& pieces) {
  pieces.is_most = true;
  std::vector<bool> asked(timeline.lanes().size());
  for (const uint32_t l : lanes) asked[l] = true;
  for (uint32_t l = 0; l < asked.size(); ++l) {
    const ViewLane& lane = timeline.lanes()[l];
    if (!lane.has_slices()) continue;
    if (asked[l]) add_plain(pieces.others, l, 0, first_starting_from(lane, t0));
    add_plain(pieces.others, l, asked[l] ? first_starting_from(lane, t1) : 0, lane.count);
  }
}

void add(int64_t& sum, int64_t value) { sum = sum_or_limit(sum, value); }

// Sums by place of NameKinds, of what one task looks at.
class Totals {
 public:
  explicit Totals(size_t places) : at_(places, kNone) {}

  SelectionTotal& of(uint32_t place) {
    if (at_[place] == kNone) {
      at_[place] = static_cast<uint32_t>(all_.size());
      all_.push_back({place, 0, 0, 0, 0, 0, INT64_MAX, -1, -1, 0});
    }
    return all_[at_[place]];
  }
  void add_slice(uint32_t place, int64_t inside, int64_t dur, uint32_t holder) {
    SelectionTotal& own = of(place);
    ++own.count;
    add(own.sum_ns, inside);
    add(own.self_ns, inside);
    add(own.whole_ns, dur);
    own.min_ns = std::min(own.min_ns, dur);
    own.max_ns = std::max(own.max_ns, dur);
    if (holder != kNone) add(of(holder).self_ns, -inside);
  }
  void add_sum(const NameSum& sum) {
    SelectionTotal& own = of(sum.place);
    add(own.self_ns, sum.self_ns);
    if (sum.count == 0) return;
    own.count += sum.count;
    add(own.sum_ns, sum.sum_ns);
    add(own.whole_ns, sum.sum_ns);
    own.min_ns = std::min(own.min_ns, int64_t{sum.min_ns});
    own.max_ns = std::max(own.max_ns, int64_t{sum.max_ns});
  }
  void merge(const Totals& from) {
    for (const SelectionTotal& t : from.all_) {
      SelectionTotal& sum = of(t.name);
      sum.count += t.count;
      add(sum.sum_ns, t.sum_ns);
      add(sum.self_ns, t.self_ns);
      add(sum.whole_ns, t.whole_ns);
      sum.min_ns = std::min(sum.min_ns, t.min_ns);
      sum.max_ns = std::max(sum.max_ns, t.max_ns);
    }
  }
  const std::vector<SelectionTotal>& all() const { return all_; }  // `name` is the place

 private:
  std::vector<uint32_t> at_;  // by place
  std::vector<SelectionTotal> all_;
};

// Work dealt out to as many tasks as there are threads: pieces k, k + tasks, …
template <class Body>
void deal(size_t tasks, size_t pieces, Body body) {
  parallel_for(tasks, [&](size_t task) {
    for (size_t k = task; k < pieces; k += tasks) body(task, k);
  });
}
size_t tasks_for(size_t pieces) { return std::clamp<size_t>(pieces, 1, static_cast<size_t>(thread_count())); }

Totals sum_area(const Timeline& timeline, const Pieces& pieces, int64_t t0, int64_t t1) {
  const NameKinds& kinds = timeline.name_kinds();
  const size_t tasks = tasks_for(pieces.summed.size());
  std::vector<Totals> own(tasks, Totals(kinds.size()));
  deal(tasks, pieces.summed.size(), [&](size_t task, size_t k) {
    const Piece& piece = pieces.summed[k];
    const ViewLane& lane = timeline.lanes()[piece.lane];
    Totals& totals = own[task];
    if (piece.block) {
      for (const NameSum& sum : timeline.area_sums().sums(piece.lane, *piece.block)) totals.add_sum(sum);
      return;
    }
    LaneWalk walk(lane, piece.from, [&](size_t i) { return kinds.place_of(lane, i); });
    walk.until(piece.to, [&](size_t i, int64_t start, int64_t dur, uint32_t holder) {
      const uint32_t place = kinds.place_of(lane, i);
      totals.add_slice(place, std::min(start + dur, t1) - start, dur, holder);
      return place;
    });
  });
  for (const Early& one : pieces.early) {
    const ViewLane& lane = timeline.lanes()[one.lane];
    const uint32_t holder = one.holder == SIZE_MAX ? kNone : kinds.place_of(lane, one.holder);
    own[0].add_slice(kinds.place_of(lane, one.slice), std::min(lane.end(one.slice), t1) - t0, lane.dur(one.slice),
                     holder);
  }
  for (size_t task = 1; task < tasks; ++task) own[0].merge(own[task]);
  return std::move(own[0]);
}

// Calls visit(index in shown, duration) for the slices of the area whose names are shown.
template <class Visit>
void for_shown(const Timeline& timeline, const Piece& piece, const std::vector<uint32_t>& shown_at, Visit visit) {
  const NameKinds& kinds = timeline.name_kinds();
  const ViewLane& lane = timeline.lanes()[piece.lane];
  if (lane.is_plain) {
    for (size_t i = piece.from; i < piece.to; ++i)
      if (const uint32_t at = shown_at[kinds.place_of(lane, i)]; at != kNone) visit(at, lane.durations[i]);
    return;
  }
  LaneWalk walk(lane, piece.from, [](size_t) { return kNone; });
  walk.until(piece.to, [&](size_t i, int64_t, int64_t dur, uint32_t) {
    if (const uint32_t at = shown_at[kinds.place_of(lane, i)]; at != kNone) visit(at, dur);
    return kNone;
  });
}

// Turns counts of what lies outside into counts of the area, in bins[0].
void take_from_whole(const AreaSums& sums, const std::vector<SelectionTotal>& shown,
                     std::vector<std::vector<uint32_t>>& bins) {
  for (std::vector<uint32_t>& own : bins)
    for (uint32_t& count : own) count = 0 - count;  // modulo 2^32, as the sums are
  for (size_t k = 0; k < shown.size(); ++k)
    for (const AreaSums::BinCount& all : sums.bins(shown[k].name)) bins[0][k * kDurationBins + all.bin] += all.count;
}

// `shown` still bear places for names.
void find_quantiles(const Timeline& timeline, const Pieces& pieces, bool exact, std::vector<SelectionTotal>& shown) {
  std::vector<uint32_t> shown_at(timeline.name_kinds().size(), kNone);
  for (uint32_t k = 0; k < shown.size(); ++k) shown_at[shown[k].name] = k;
  const AreaSums& sums = timeline.area_sums();
  const bool from_whole = !exact && pieces.is_most &&
                          std::all_of(shown.begin(), shown.end(), [&](const auto& t) { return sums.has_bins(t.name); });
  const std::vector<Piece>& looked_at = from_whole ? pieces.others : pieces.plain;
  const size_t tasks = tasks_for(looked_at.size());
  std::vector<std::vector<std::vector<int64_t>>> kept(tasks);
  std::vector<std::vector<uint32_t>> bins(tasks);
  for (size_t task = 0; task < tasks; ++task) {
    if (exact) kept[task].resize(shown.size());
    if (!exact) bins[task].resize(shown.size() * kDurationBins);
  }
  const auto keep = [&](size_t task) {
    return [&own = kept[task]](uint32_t at, int64_t dur) { own[at].push_back(dur); };
  };
  const auto count = [&](size_t task) {
    return [own = bins[task].data()](uint32_t at, int64_t dur) { ++own[at * kDurationBins + duration_bin(dur)]; };
  };
  deal(tasks, looked_at.size(), [&](size_t task, size_t k) {
    if (exact) {
      for_shown(timeline, looked_at[k], shown_at, keep(task));
    } else {
      for_shown(timeline, looked_at[k], shown_at, count(task));
    }
  });
  if (from_whole) take_from_whole(sums, shown, bins);
  for (const Early& one : pieces.early) {
    const ViewLane& lane = timeline.lanes()[one.lane];
    const uint32_t at = shown_at[timeline.name_kinds().place_of(lane, one.slice)];
    if (at == kNone) continue;
    if (exact) {
      keep(0)(at, lane.dur(one.slice));
    } else {
      count(0)(at, lane.dur(one.slice));
    }
  }
  parallel_for(shown.size(), [&](size_t k) {
    SelectionTotal& total = shown[k];
    if (exact) {
      std::vector<int64_t> all = std::move(kept[0][k]);
      for (size_t task = 1; task < tasks; ++task) all.insert(all.end(), kept[task][k].begin(), kept[task][k].end());
      total.median_ns = quantile(all, 0.5);
      total.p95_ns = quantile(all, 0.95);
      return;
    }
    uint32_t* all = bins[0].data() + k * kDurationBins;
    for (size_t task = 1; task < tasks; ++task)
      for (size_t b = 0; b < kDurationBins; ++b) all[b] += bins[task][k * kDurationBins + b];
    total.median_ns = binned_quantile(all, total.count, 0.5, total.min_ns, total.max_ns);
    total.p95_ns = binned_quantile(all, total.count, 0.95, total.min_ns, total.max_ns);
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
  Pieces pieces = pieces_of(timeline, lanes, t0, t1);
  if (pieces.slices > timeline.area_sums().slice_count() / 2) add_others(timeline, lanes, t0, t1, pieces);
  const Totals totals = sum_area(timeline, pieces, t0, t1);
  Selection out;
  for (SelectionTotal total : totals.all()) {
    if (total.count == 0) continue;
    total.self_ns = std::max<int64_t>(0, total.self_ns);  // overlapping slices may take more than there is
    out.slice_count += total.count;
    out.totals.push_back(total);
  }
  // Places are in the order of names and kinds.
  std::sort(out.totals.begin(), out.totals.end(), [](const SelectionTotal& a, const SelectionTotal& b) {
    return std::tuple(-a.sum_ns, a.name) < std::tuple(-b.sum_ns, b.name);
  });
  if (out.totals.size() > limit) {
    out.left_out = out.totals.size() - limit;
    out.totals.resize(limit);
  }
  out.exact = out.slice_count <= kExactQuantiles;
  find_quantiles(timeline, pieces, out.exact, out.totals);
  const NameKinds& kinds = timeline.name_kinds();
  for (SelectionTotal& total : out.totals) {
    total.kind = kinds.kind(total.name);
    total.name = kinds.name(total.name);
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
