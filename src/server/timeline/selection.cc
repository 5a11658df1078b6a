// Blocks that lie whole in an area are added up from the timeline's sums by name (AreaSums); only slices at its ends
// are looked at one by one. Quantiles of a large area need all durations, but nothing else: durations are counted in
// bins, and for whole stretches of the run the timeline has these counts already (DurationCounts).
//
//      border      t0        border                border     t1
//        ├─────────┊───────────┼─────────────────────┼──────────┊───
//                  ┊▓▓ added ▓▓│▓ counted already ▓▓▓│▓▓ added ▓┊      slices of the lanes that are asked for
//                              │▒▒▒▒▒▒ taken ▒▒▒▒▒▒▒▒│                slices of all other lanes
//
// If the border nearest to t0 is before it (or the one nearest to t1 after it), the slices between the two are taken
// away instead of added.
#include "server/timeline/selection.h"

#include "base/parallel.h"
#include "server/timeline/lane_walk.h"
#include "server/timeline/slice_window.h"
#include "server/timeline/timeline_sums.h"

namespace stageline {
namespace {

constexpr size_t kPiece = size_t{1} << 14;  // slices that one task looks at
constexpr uint32_t kNone = UINT32_MAX;

// Covers slices [from, to) of a lane.
struct Piece {
  uint32_t lane;
  size_t from, to;
};
// A slice that begins before the area or ends after it, and the slice whose own time does not include it.
struct Cut {
  uint32_t lane;
  size_t slice, holder;
};
struct GroupBlock {
  const LaneGroup* group;
  const SumBlock* block;
};

struct Pieces {
  std::vector<GroupBlock> blocks;
  std::vector<Piece> between;  // slices that start within the area and are in none of the blocks
  std::vector<Cut> early;      // slices that begin before the area
  std::vector<Cut> late;       // slices of blocks that end after it
};

// Adds pieces of at most kPiece slices each.
void add_pieces(std::vector<Piece>& pieces, uint32_t lane, size_t from, size_t to) {
  for (; from < to; from += kPiece) pieces.push_back({lane, from, std::min(to, from + kPiece)});
}
void add_pieces(std::vector<Piece>& pieces, const Timeline& timeline, uint32_t lane, int64_t from_ns, int64_t to_ns) {
  const ViewLane& own = timeline.lanes()[lane];
  add_pieces(pieces, lane, first_starting_from(own, from_ns), first_starting_from(own, to_ns));
}
size_t slices_of(const std::vector<Piece>& pieces) {
  return sum_over<size_t>(pieces, [](const Piece& piece) { return piece.to - piece.from; });
}

std::vector<bool> mask_of(const Timeline& timeline, const std::vector<uint32_t>& lanes) {
  std::vector<bool> asked(timeline.lanes().size());
  for (const uint32_t l : lanes) asked[l] = true;
  return asked;
}

// Calls take() for the slices of each row that start before t and end after t: the last one, or some that overlap.
template <class Take> void for_cut(const ViewLane& lane, int64_t t, Take take) {
  for (size_t r = 0; r < lane.rows.size(); ++r) {
    for (size_t p = first_starting_from(lane, lane.rows[r], t); p-- > 0;) {
      const size_t slice = lane.rows[r].slice_at(p);
      if (lane.end(slice) <= t) break;
      take(slice, lane.takes_time(slice) ? enclosing_slice(lane, {r, p}) : SIZE_MAX);
    }
  }
}

Pieces pieces_of(const Timeline& timeline, const std::vector<bool>& asked, int64_t t0, int64_t t1) {
  Pieces out;
  for (const LaneGroup& group : timeline.area_sums().groups()) {
    const bool is_whole = std::ranges::all_of(group.lanes, [&](uint32_t l) { return asked[l]; });
    int64_t from_ns = t1, to_ns = t1;  // ends of the blocks; equal where there are none
    for (const SumBlock& block : group.blocks) {
      if (!is_whole || block.from_ns < t0 || block.to_ns > t1) continue;
      if (from_ns == t1) from_ns = block.from_ns;
      to_ns = block.to_ns;
      out.blocks.push_back({&group, &block});
    }
    for (const uint32_t l : group.lanes) {
      if (!asked[l]) continue;
      const ViewLane& lane = timeline.lanes()[l];
      for_cut(lane, t0, [&](size_t slice, size_t holder) { out.early.push_back({l, slice, holder}); });
      add_pieces(out.between, timeline, l, t0, from_ns);
      if (from_ns == t1) continue;
      add_pieces(out.between, timeline, l, to_ns, t1);
      for_cut(lane, t1, [&](size_t slice, size_t holder) {
        if (lane.start(slice) >= from_ns && lane.start(slice) < to_ns) out.late.push_back({l, slice, holder});
      });
    }
  }
  return out;
}

void add(int64_t& sum, int64_t value) { sum = sum_or_limit(sum, value); }

// Sums for each place of NameKinds, over what one task looks at.
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
    own.min_ns = std::min(own.min_ns, sum.min_ns);
    own.max_ns = std::max(own.max_ns, sum.max_ns);
  }
  // Takes away time of a slice that was added whole but lies outside.
  void take(uint32_t place, int64_t outside, uint32_t holder) {
    add(of(place).sum_ns, -outside);
    add(of(place).self_ns, -outside);
    if (holder != kNone) add(of(holder).self_ns, outside);
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
  const std::vector<SelectionTotal>& all() const { return all_; }  // in these, `name` is the place

 private:
  std::vector<uint32_t> at_;  // for each place
  std::vector<SelectionTotal> all_;
};

// Deals pieces out to as many tasks as there are threads: task k gets pieces k, k + tasks, …
template <class Body> void deal(size_t tasks, size_t pieces, Body body) {
  parallel_for(tasks, [&](size_t task) {
    for (size_t k = task; k < pieces; k += tasks) body(task, k);
  });
}
size_t tasks_for(size_t pieces) { return std::clamp<size_t>(pieces, 1, static_cast<size_t>(thread_count())); }

Totals sum_area(const Timeline& timeline, const Pieces& pieces, int64_t t0, int64_t t1) {
  const NameKinds& kinds = timeline.name_kinds();
  const size_t work = pieces.blocks.size() + pieces.between.size(), tasks = tasks_for(work);
  std::vector<Totals> own(tasks, Totals(kinds.size()));
  deal(tasks, work, [&](size_t task, size_t k) {
    Totals& totals = own[task];
    if (k < pieces.blocks.size()) {
      const GroupBlock& one = pieces.blocks[k];
      for (const NameSum& sum : one.group->sums_of(*one.block)) totals.add_sum(sum);
      return;
    }
    const Piece& piece = pieces.between[k - pieces.blocks.size()];
    const ViewLane& lane = timeline.lanes()[piece.lane];
    LaneWalk walk(lane, piece.from, [&](size_t i) { return kinds.place_of(lane, i); });
    walk.until(piece.to, [&](size_t i, int64_t start, int64_t dur, uint32_t holder) {
      const uint32_t place = kinds.place_of(lane, i);
      totals.add_slice(place, std::min(start + dur, t1) - start, dur, lane.takes_time(i) ? holder : kNone);
      return place;
    });
  });
  for (size_t task = 1; task < tasks; ++task) own[0].merge(own[task]);
  const auto holder_of = [&](const ViewLane& lane, const Cut& cut) {
    return cut.holder == SIZE_MAX ? kNone : kinds.place_of(lane, cut.holder);
  };
  for (const Cut& one : pieces.early) {
    const ViewLane& lane = timeline.lanes()[one.lane];
    own[0].add_slice(kinds.place_of(lane, one.slice), std::min(lane.end(one.slice), t1) - t0, lane.dur(one.slice),
                     holder_of(lane, one));
  }
  for (const Cut& one : pieces.late) {
    const ViewLane& lane = timeline.lanes()[one.lane];
    own[0].take(kinds.place_of(lane, one.slice), lane.end(one.slice) - t1, holder_of(lane, one));
  }
  return std::move(own[0]);
}

// Stretches whose counts make up an area, except for slices to add and slices to take away. With no stretches, every
// slice is looked at.
struct CountPlan {
  size_t first = 0, last = 0;
  std::vector<Piece> add, take;
};

size_t nearest_border(const DurationCounts& counts, int64_t t) {
  size_t at = 0;
  while (at < counts.stretch_count() && counts.border_ns(at + 1) <= t) ++at;
  return at < counts.stretch_count() && counts.border_ns(at + 1) - t < t - counts.border_ns(at) ? at + 1 : at;
}

CountPlan plan_of(const Timeline& timeline, const std::vector<bool>& asked, int64_t t0, int64_t t1,
                  bool may_use_counts) {
  CountPlan all, plan;
  const DurationCounts& counts = timeline.duration_counts();
  plan.first = nearest_border(counts, t0);
  plan.last = nearest_border(counts, t1);
  if (plan.first >= plan.last) may_use_counts = false;
  const int64_t from_ns = counts.border_ns(plan.first), to_ns = counts.border_ns(plan.last);
  for (uint32_t l = 0; l < asked.size(); ++l) {
    if (!timeline.lanes()[l].has_slices()) continue;
    if (asked[l]) add_pieces(all.add, timeline, l, t0, t1);
    if (!may_use_counts) continue;
    if (asked[l]) {
      add_pieces(plan.add, timeline, l, t0, from_ns);
      add_pieces(plan.add, timeline, l, to_ns, t1);
      add_pieces(plan.take, timeline, l, from_ns, t0);
      add_pieces(plan.take, timeline, l, t1, to_ns);
    } else {
      add_pieces(plan.take, timeline, l, from_ns, to_ns);
    }
  }
  return may_use_counts && slices_of(plan.add) + slices_of(plan.take) < slices_of(all.add) ? plan : all;
}

// Counters for the bins of the names that are shown: for each name from its least duration's bin to its greatest one's.
class ShownBins {
 public:
  ShownBins(const std::vector<SelectionTotal>& shown, const DurationCounts* whole) {
    for (const SelectionTotal& total : shown) {
      const size_t first = whole ? whole->first_bin(total.name) : duration_bin(total.min_ns);
      const size_t last = whole ? whole->last_bin(total.name) : duration_bin(total.max_ns);
      first_.push_back(first);
      base_.push_back(size_);
      size_ += last - first + 1;
    }
    base_.push_back(size_);
  }
  size_t size() const { return size_; }
  size_t at(size_t shown, size_t bin) const { return base_[shown] + bin - first_[shown]; }
  size_t first(size_t shown) const { return first_[shown]; }
  std::span<const uint32_t> of(const std::vector<uint32_t>& bins, size_t shown) const {
    return std::span(bins).subspan(base_[shown], base_[shown + 1] - base_[shown]);
  }

 private:
  std::vector<size_t> first_, base_;
  size_t size_ = 0;
};

// Estimates quantiles for areas of more than kExactQuantiles slices. The names in `shown` are still places.
void find_binned_quantiles(const Timeline& timeline, const std::vector<bool>& asked, const Pieces& pieces, int64_t t0,
                           int64_t t1, const std::vector<uint32_t>& shown_at, std::vector<SelectionTotal>& shown) {
  const NameKinds& kinds = timeline.name_kinds();
  const DurationCounts& counts = timeline.duration_counts();
  const bool all_counted = std::ranges::all_of(shown, [&](const auto& t) { return counts.has(t.name); });
  const CountPlan plan = plan_of(timeline, asked, t0, t1, all_counted);
  const ShownBins at(shown, all_counted ? &counts : nullptr);
  const size_t work = plan.add.size() + plan.take.size(), tasks = tasks_for(work);
  std::vector<std::vector<uint32_t>> bins(tasks, std::vector<uint32_t>(at.size()));
  deal(tasks, work, [&](size_t task, size_t k) {
    const bool adds = k < plan.add.size();
    const Piece& piece = adds ? plan.add[k] : plan.take[k - plan.add.size()];
    const ViewLane& lane = timeline.lanes()[piece.lane];
    const uint32_t by = adds ? 1 : UINT32_MAX;  // UINT32_MAX takes 1 away, since sums are modulo 2^32
    for_durations(lane, piece.from, piece.to, [&, own = bins[task].data()](size_t i, int64_t dur) {
      if (const uint32_t s = shown_at[kinds.place_of(lane, i)]; s != kNone) own[at.at(s, duration_bin(dur))] += by;
    });
  });
  for (const Cut& one : pieces.early) {
    const ViewLane& lane = timeline.lanes()[one.lane];
    const uint32_t s = shown_at[kinds.place_of(lane, one.slice)];
    if (s != kNone) ++bins[0][at.at(s, duration_bin(lane.dur(one.slice)))];
  }
  for (size_t task = 1; task < tasks; ++task)
    for (size_t b = 0; b < at.size(); ++b) bins[0][b] += bins[task][b];
  for (uint32_t s = 0; s < shown.size(); ++s) {
    SelectionTotal& total = shown[s];
    for (size_t stretch = plan.first; stretch < plan.last; ++stretch)
      for (const DurationCounts::Count& one : counts.counts(stretch, total.name))
        bins[0][at.at(s, one.bin)] += one.count;
    const std::span<const uint32_t> own = at.of(bins[0], s);
    total.median_ns = binned_quantile(own, at.first(s), total.count, 0.5, total.min_ns, total.max_ns);
    total.p95_ns = binned_quantile(own, at.first(s), total.count, 0.95, total.min_ns, total.max_ns);
  }
}

void find_exact_quantiles(const Timeline& timeline, const std::vector<bool>& asked, const Pieces& pieces, int64_t t0,
                          int64_t t1, const std::vector<uint32_t>& shown_at, std::vector<SelectionTotal>& shown) {
  const NameKinds& kinds = timeline.name_kinds();
  const CountPlan plan = plan_of(timeline, asked, t0, t1, false);
  const size_t tasks = tasks_for(plan.add.size());
  std::vector<std::vector<std::vector<int64_t>>> kept(tasks);
  for (auto& own : kept) own.resize(shown.size());
  deal(tasks, plan.add.size(), [&](size_t task, size_t k) {
    const Piece& piece = plan.add[k];
    const ViewLane& lane = timeline.lanes()[piece.lane];
    for_durations(lane, piece.from, piece.to, [&](size_t i, int64_t dur) {
      if (const uint32_t s = shown_at[kinds.place_of(lane, i)]; s != kNone) kept[task][s].push_back(dur);
    });
  });
  for (const Cut& one : pieces.early) {
    const ViewLane& lane = timeline.lanes()[one.lane];
    const uint32_t s = shown_at[kinds.place_of(lane, one.slice)];
    if (s != kNone) kept[0][s].push_back(lane.dur(one.slice));
  }
  parallel_for(shown.size(), [&](size_t s) {
    std::vector<int64_t> all = std::move(kept[0][s]);
    for (size_t task = 1; task < tasks; ++task) all.insert(all.end(), kept[task][s].begin(), kept[task][s].end());
    shown[s].median_ns = quantile(all, 0.5);
    shown[s].p95_ns = quantile(all, 0.95);
  });
}

}  // namespace

int64_t quantile(std::vector<int64_t>& values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * (values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[at];
}

Selection select_area(const Timeline& timeline, const std::vector<uint32_t>& lanes, const TimeWindow& window,
                      size_t limit) {
  const int64_t t0 = window.from_ns(), t1 = window.to_ns();
  const std::vector<bool> asked = mask_of(timeline, lanes);
  const Pieces pieces = pieces_of(timeline, asked, t0, t1);
  const Totals totals = sum_area(timeline, pieces, t0, t1);
  Selection out;
  for (SelectionTotal total : totals.all()) {
    if (total.count == 0) continue;
    total.self_ns = std::max<int64_t>(0, total.self_ns);  // slices that overlap may take more than there is
    out.slice_count += total.count;
    out.totals.push_back(total);
  }
  // Places are in the order of names and then kinds.
  sort_stably(out.totals, [](const SelectionTotal& a, const SelectionTotal& b) {
    return std::tuple(-a.sum_ns, a.name) < std::tuple(-b.sum_ns, b.name);
  });
  if (out.totals.size() > limit) {
    out.left_out = out.totals.size() - limit;
    out.totals.resize(limit);
  }
  out.exact = out.slice_count <= kExactQuantiles;
  const NameKinds& kinds = timeline.name_kinds();
  std::vector<uint32_t> shown_at(kinds.size(), kNone);
  for (uint32_t k = 0; k < out.totals.size(); ++k) shown_at[out.totals[k].name] = k;
  (out.exact ? find_exact_quantiles : find_binned_quantiles)(timeline, asked, pieces, t0, t1, shown_at, out.totals);
  for (SelectionTotal& total : out.totals) {
    total.kind = kinds.kind(total.name);
    total.name = kinds.name(total.name);
  }
  return out;
}

Result<std::string> select_answer(const Timeline& timeline, const Query& query) {
  TRY(lanes, list_parameter(query, "lanes", static_cast<uint32_t>(timeline.lanes().size())));
  TRY(window, window_parameters(query, timeline.span_ns()));
  TRY(limit, integer_parameter(query, "limit", 500, 1, 2000));
  const Selection area = select_area(timeline, *lanes, *window, *limit);
  JsonWriter json;
  json.begin_object().field("t0", window->t0_ns).field("t1", window->t1_ns);
  json.field("slices", area.slice_count).field("left_out", area.left_out);
  json.field("exact", area.exact).objects("rows", area.totals, [&](const SelectionTotal& t) {
    json.field("name_id", t.name)
        .field("name", short_name(timeline.names().text(t.name)))
        .field("kind", int64_t{t.kind});
    json.field("count", t.count).field("sum_ns", t.sum_ns).field("self_ns", t.self_ns);
    const double mean_ns = t.whole_ns / static_cast<double>(t.count);
    json.field("mean_ns", std::llround(mean_ns)).field("min_ns", t.min_ns).field("median_ns", t.median_ns);
    json.field("p95_ns", t.p95_ns).field("max_ns", t.max_ns);
  });
  return json.end_object().take();
}

}  // namespace stageline
