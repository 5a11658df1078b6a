// The viewer's index against brute force: what is drawn is what is busy, at every zoom.
#include "server/timeline/timeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "make_trace.h"
#include "server/timeline/row_index.h"
#include "server/timeline/selection.h"
#include "server/timeline/slice_window.h"
#include "server/timeline/timeline_sums.h"

namespace stageline {
namespace {

// One rank with one thread of random slices: nested, touching, overlapping, without duration, of three categories.
Trace random_slices(uint32_t seed, size_t count, bool may_overlap) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return static_cast<int64_t>(random() % n); };
  Trace trace;
  trace.clock = ClockState::kShared;
  trace.categories = {{"cpu_op", Category::kCpuOp},
                      {"cuda_runtime", Category::kRuntime},
                      {"python_function", Category::kPythonFunction}};
  for (int k = 0; k < 9; ++k) trace.names.intern("n" + std::to_string(k));  // ids are those of every such trace
  trace.names.intern("inner");
  trace.parts.emplace_back();
  Part& part = trace.parts[0];
  struct Raw {
    int64_t start, dur;
    uint8_t category;
    StringId name;
  };
  std::vector<Raw> raw;
  int64_t at = 1'000'000;
  while (raw.size() < count) {
    const int64_t dur = below(20) == 0 ? 0 : below(7) == 0 ? 1 + below(100'000) : 1 + below(300);
    const auto category = static_cast<uint8_t>(below(3));
    raw.push_back({at, dur, category, trace.names.intern("n" + std::to_string(below(9)))});
    if (dur > 10 && below(3) == 0)
      for (int64_t inner = at, end = at + dur; raw.size() < count && inner < end;) {
        const int64_t piece = std::min(end - inner, 1 + below(static_cast<uint32_t>(dur)));
        raw.push_back({inner, piece, static_cast<uint8_t>(below(3)), trace.names.intern("inner")});
        inner += piece + below(5);
      }
    at += may_overlap ? below(static_cast<uint32_t>(dur + 50)) : dur + below(3) * below(400);
  }
  std::stable_sort(raw.begin(), raw.end(),
                   [](const Raw& a, const Raw& b) { return a.start != b.start ? a.start < b.start : a.dur > b.dur; });
  for (const Raw& r : raw) {
    Slices& s = part.slices;
    s.start_ns.push_back(r.start);
    s.dur_ns.push_back(r.dur);
    s.name_id.push_back(r.name);
    s.file_index.push_back(static_cast<uint32_t>(s.file_index.size()));
    s.parent.push_back(kNoSliceIndex);
    s.correlation.push_back(kNoCorrelation);
    s.partner.push_back(kNoSliceIndex);
    s.args_offset_low.push_back(0);
    s.args_offset_high.push_back(0);
    s.stream_id.push_back(0);
    s.step.push_back(0);
    s.category_id.push_back(r.category);
    s.kernel_class.push_back(0);
  }
  part.event_count = static_cast<int64_t>(raw.size());
  Lane lane;
  lane.name = "thread 1";
  lane.end = raw.size();
  lane.kind = LaneKind::kHostThread;
  part.lanes.push_back(lane);
  return trace;
}

// Busy time of a kind in a row, as drawn, slice by slice.
double brute_busy(const ViewLane& lane, const ViewRow& row, uint8_t kind, double t0, double t1) {
  double busy = 0;
  for (size_t p = 0; p < row.count; ++p) {
    const size_t i = row.slice_at(p);
    if (lane.kind(i) != kind) continue;
    const auto start = static_cast<double>(lane.start(i));
    busy += std::max(0.0, std::min(start + static_cast<double>(drawn_ns(lane, row, p)), t1) - std::max(start, t0));
  }
  return busy;
}

const ViewLane& only_lane(const Timeline& timeline) {
  REQUIRE(timeline.lanes().size() == 1);
  return timeline.lanes()[0];
}

}  // namespace

TEST_CASE("timeline: rows hold every slice once, below what encloses it, and overlap by less than they may") {
  for (const bool overlap : {false, true}) {
    const Trace trace = random_slices(7, 5000, overlap);
    const Timeline timeline(trace);
    const ViewLane& lane = only_lane(timeline);
    std::vector<int> seen(lane.count);
    size_t clipped = 0;
    for (size_t r = 0; r < lane.rows.size(); ++r) {
      const ViewRow& row = lane.rows[r];
      clipped += row.clipped;
      for (size_t p = 0; p < row.count; ++p) {
        const size_t i = row.slice_at(p);
        ++seen[i];
        size_t holder = i;  // the latest slice before it that has not ended and ends no earlier
        while (holder-- > 0)
          if (lane.end(holder) > lane.start(i) && lane.end(holder) >= lane.end(i)) break;
        CHECK(enclosing_slice(lane, {r, p}) == holder);
        if (holder != SIZE_MAX) CHECK(row_place(lane, holder).row < r);
        if (p == 0) continue;
        const size_t before = row.slice_at(p - 1);
        CHECK(lane.end(before) - lane.start(i) < kOverlapNs);
        CHECK(lane.end(before) <= lane.end(i));
        CHECK(lane.start(before) + drawn_ns(lane, row, p - 1) <= lane.start(i));
      }
    }
    CHECK((clipped > 0) == overlap);
    CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<std::ptrdiff_t>(lane.count - lane.hidden));
    CHECK(timeline.slice_count() == 5000);
  }
}

TEST_CASE("timeline: tiles are true within half a pixel at every zoom") {
  for (const bool overlap : {false, true}) {
    const Trace trace = random_slices(11, 6000, overlap);
    const Timeline timeline(trace);
    const ViewLane& lane = only_lane(timeline);
    std::mt19937 random(3);
    const auto span = static_cast<double>(timeline.span_ns());
    size_t checked = 0;
    for (double zoom = span; zoom >= 3; zoom /= 3.7)
      for (const size_t columns : {1UL, 7UL, 400UL}) {
        const double t0 = std::floor((span - zoom) * static_cast<double>(random() % 1000) / 1000);
        const TimeWindow window{t0, t0 + zoom};
        const double column = zoom / static_cast<double>(columns);
        for (const ViewRow& row : lane.rows) {
          double all = 0;
          for (const KindCoverage& one : row_coverage(lane, row, window, columns)) {
            double drawn = 0, worst = 0;
            for (size_t c = 0; c < columns; ++c) {
              drawn += one.share[c] / 255.0 * column;
              worst = std::max(worst, std::abs(drawn - brute_busy(lane, row, one.kind, t0,
                                                                  t0 + column * static_cast<double>(c + 1))));
              if (columns > 100 && c % 37 != 0) continue;
              const double exact = brute_busy(lane, row, one.kind, t0 + column * static_cast<double>(c),
                                              t0 + column * static_cast<double>(c + 1));
              CHECK(std::abs(one.share[c] / 255.0 - exact / column) <= 1.0 / 255 + 1e-9);
            }
            CHECK(worst <= column / 2);
            CHECK(worst <= column * 0.51 / 255 + 1e-6);  // what the carry promises
            all += drawn;
            ++checked;
          }
          double busy = 0;
          for (const uint8_t kind : row.kinds) busy += brute_busy(lane, row, kind, t0, t0 + zoom);
          CHECK(std::abs(all - busy) <= column / 2);
        }
      }
    CHECK(checked > 100);
  }
}

TEST_CASE("timeline: drawn time by prefix sums is drawn time by walking") {
  const Trace trace = random_slices(13, 4000, true);
  const Timeline timeline(trace);
  const ViewLane& lane = only_lane(timeline);
  std::mt19937 random(5);
  for (int k = 0; k < 300; ++k)
    for (const ViewRow& row : lane.rows) {
      const size_t from = random() % row.count, to = from + random() % (row.count - from + 1);
      KindSums sums{};
      add_busy(lane, row, from, to, sums);
      std::map<uint8_t, int64_t> walked;
      for (size_t p = from; p < to; ++p) walked[lane.kind(row.slice_at(p))] += drawn_ns(lane, row, p);
      for (size_t kind = 0; kind < row.kinds.size(); ++kind) CHECK(sums[kind] == walked[row.kinds[kind]]);
    }
}

TEST_CASE("timeline: calls that overlap by nanoseconds stay in their row, and are no part of each other") {
  // Two operators under a step; the second seems to begin 30 ns before the first has ended.
  Trace trace = random_slices(7, 4, false);
  Slices& s = trace.parts[0].slices;
  s.start_ns = {0, 100'000, 400'000, 499'970};
  s.dur_ns = {1'000'000, 100'000, 100'000, 200'000};
  const Timeline timeline(trace);
  const ViewLane& lane = only_lane(timeline);
  REQUIRE(lane.rows.size() == 2);
  CHECK(lane.rows[1].clipped == 1);
  CHECK(drawn_ns(lane, lane.rows[1], 1) == 99'970);
  CHECK(self_ns(lane, 0) == 600'000);
  for (const size_t child : {1UL, 2UL, 3UL}) {
    CHECK(self_ns(lane, child) == lane.dur(child));
    CHECK(enclosing_slice(lane, row_place(lane, child)) == 0);
  }
  // A microsecond and more is true work side by side: another row.
  s.start_ns[3] = 499'000;
  const Timeline apart(trace);
  CHECK(only_lane(apart).rows.size() == 3);
}

TEST_CASE("timeline: an area's sums are those of its slices") {
  const Trace trace = random_slices(17, 5000, false);
  const Timeline timeline(trace);
  const ViewLane& lane = only_lane(timeline);
  const auto span = static_cast<double>(timeline.span_ns());
  for (const auto& [from, to] : {std::pair{0.0, 1.0}, {0.2, 0.21}, {0.4, 0.9}}) {
    const TimeWindow window{std::floor(span * from), std::ceil(span * to)};
    struct Sum {
      uint64_t count = 0;
      double inside = 0;
      std::vector<int64_t> durations;
    };
    std::map<std::pair<StringId, uint8_t>, Sum> sums;
    for (size_t i = 0; i < lane.count; ++i) {
      const auto start = static_cast<double>(lane.start(i)), end = static_cast<double>(lane.end(i));
      if (start >= window.t1_ns || (end <= window.t0_ns && start < window.t0_ns)) continue;
      Sum& sum = sums[{lane.names[i], lane.kind(i)}];
      ++sum.count;
      sum.inside += std::max(0.0, std::min(end, window.t1_ns) - std::max(start, window.t0_ns));
      sum.durations.push_back(lane.dur(i));
    }
    const Selection area = select_area(timeline, {0}, window, 2000);
    CHECK(area.totals.size() == sums.size());
    CHECK(area.exact);
    int64_t self = 0;
    for (const SelectionTotal& total : area.totals) {
      Sum& sum = sums[{total.name, total.kind}];
      CHECK(total.count == sum.count);
      CHECK(static_cast<double>(total.sum_ns) == sum.inside);
      CHECK(total.min_ns == *std::min_element(sum.durations.begin(), sum.durations.end()));
      CHECK(total.max_ns == *std::max_element(sum.durations.begin(), sum.durations.end()));
      std::sort(sum.durations.begin(), sum.durations.end());
      CHECK(total.median_ns == sum.durations[(sum.durations.size() - 1) / 2]);
      self += total.self_ns;
    }
    // Time outside all other slices of the area is busy time of the first row, once.
    double busy = 0;
    for (const uint8_t kind : lane.rows[0].kinds)
      busy += brute_busy(lane, lane.rows[0], kind, window.t0_ns, window.t1_ns);
    CHECK(static_cast<double>(self) == busy);
  }
}

// As many ranks with a thread of random slices each.
Trace random_ranks(uint32_t seed, size_t ranks, size_t count) {
  Trace trace = random_slices(seed, count, false);
  for (size_t r = 1; r < ranks; ++r) {
    trace.parts.push_back(random_slices(seed + static_cast<uint32_t>(r), count, r % 2 == 1).parts[0]);
    trace.parts.back().rank = static_cast<int32_t>(r);
  }
  return trace;
}

// Checks an area's sums against a look at every slice.
void check_sums(const Timeline& timeline, const std::vector<uint32_t>& lanes, int64_t t0, int64_t t1) {
  struct Sum {
    uint64_t count = 0;
    int64_t inside = 0, self = 0;
    std::vector<int64_t> durations;
  };
  std::map<std::pair<StringId, uint8_t>, Sum> sums;
  for (const uint32_t l : lanes) {
    const ViewLane& lane = timeline.lanes()[l];
    for (size_t i = 0; i < lane.count; ++i) {
      if (lane.start(i) >= t1 || (lane.end(i) <= t0 && lane.start(i) < t0)) continue;
      const PlaceInRow at = row_place(lane, i);
      if (!at) continue;
      const int64_t inside = std::max<int64_t>(0, std::min(lane.end(i), t1) - std::max(lane.start(i), t0));
      Sum& own = sums[{lane.names[i], lane.kind(i)}];
      ++own.count;
      own.inside += inside;
      own.self += inside;
      own.durations.push_back(lane.dur(i));
      if (const size_t holder = enclosing_slice(lane, at); holder != SIZE_MAX)
        sums[{lane.names[holder], lane.kind(holder)}].self -= inside;
    }
  }
  const Selection area = select_area(timeline, lanes, {static_cast<double>(t0), static_cast<double>(t1)}, 2000);
  size_t with_slices = 0;
  for (const auto& [key, sum] : sums) with_slices += sum.count > 0 ? 1 : 0;
  CHECK(area.totals.size() == with_slices);
  for (const SelectionTotal& total : area.totals) {
    Sum& sum = sums[{total.name, total.kind}];
    std::sort(sum.durations.begin(), sum.durations.end());
    REQUIRE(total.count == sum.count);
    CHECK(total.sum_ns == sum.inside);
    CHECK(total.self_ns == std::max<int64_t>(0, sum.self));
    CHECK(total.min_ns == sum.durations.front());
    CHECK(total.max_ns == sum.durations.back());
    CHECK(total.median_ns == sum.durations[(sum.durations.size() - 1) / 2]);
  }
}

TEST_CASE("timeline: sums kept for whole stretches are those of their slices, in any window") {
  for (const bool overlap : {false, true}) {
    const Trace trace = random_slices(31, 30'000, overlap);
    const Timeline timeline(trace);
    REQUIRE(timeline.area_sums().groups().size() == 1);
    const LaneGroup& group = timeline.area_sums().groups()[0];
    CHECK(group.blocks.size() > 2);
    CHECK(group.sums.size() * sizeof(NameSum) <= only_lane(timeline).count / 2);
    std::mt19937 random(2);
    const auto span = static_cast<uint32_t>(timeline.span_ns());
    check_sums(timeline, {0}, 0, span);
    for (int k = 0; k < 12; ++k) {
      const int64_t a = random() % span, b = random() % span;
      check_sums(timeline, {0}, std::min(a, b), std::max(a, b) + 1);
    }
    for (const SumBlock& block : group.blocks) check_sums(timeline, {0}, block.from_ns, block.to_ns);
  }
}

TEST_CASE("timeline: sums of some lanes of a group, and of all") {
  const Trace trace = random_ranks(41, 7, 5000);
  const Timeline timeline(trace);
  REQUIRE(timeline.area_sums().groups().size() == 1);
  REQUIRE(timeline.area_sums().groups()[0].blocks.size() > 2);
  std::mt19937 random(4);
  const auto span = static_cast<uint32_t>(timeline.span_ns());
  for (const std::vector<uint32_t>& lanes : {std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6}, {0, 2, 3, 4, 5, 6}, {5}})
    for (int k = 0; k < 4; ++k) {
      const int64_t a = random() % span, b = random() % span;
      check_sums(timeline, lanes, std::min(a, b), std::max(a, b) + 1);
    }
}

TEST_CASE("timeline: lanes stand in groups of about as many slices, whatever their number") {
  const Trace of_many = random_ranks(51, 300, 20);
  const Timeline many(of_many);
  size_t lanes = 0;
  for (const LaneGroup& group : many.area_sums().groups()) {
    CHECK(group.lanes.size() <= AreaSums::kGroupLanes);
    lanes += group.lanes.size();
  }
  CHECK(lanes == 300);
  CHECK(many.area_sums().groups().size() == 2);
  check_sums(many, {0, 100, 299}, 0, many.span_ns());
  const Trace of_large = random_ranks(53, 3, 200'000);
  const Timeline large(of_large);
  CHECK(large.area_sums().groups().size() == 2);
}

TEST_CASE("timeline: quantiles of a large area are those of its durations within a bin") {
  const Trace trace = random_ranks(37, 5, 500'000);
  const Timeline timeline(trace);
  const DurationCounts& counts = timeline.duration_counts();
  CHECK(counts.stretch_count() > 4);
  CHECK(counts.bytes() < timeline.slice_count() / 3);
  const auto span = static_cast<double>(timeline.span_ns());
  // The cases are stretches with something to add or to remove, all lanes, fewer lanes (from which the others are
  // removed), and few lanes.
  struct Asked {
    std::vector<uint32_t> lanes;
    double from, to;
  };
  for (const Asked& asked :
       {Asked{{0, 1, 2, 3, 4}, 0.1, 0.95}, Asked{{0, 1, 2, 3, 4}, 0, 1}, Asked{{0, 1, 2, 3, 4}, 0.23, 0.71},
        Asked{{0, 1, 3, 4}, 0.05, 0.97}, Asked{{1, 2, 3}, 0, 1}}) {
    const TimeWindow window{std::floor(span * asked.from), std::ceil(span * asked.to)};
    const Selection area = select_area(timeline, asked.lanes, window, 2000);
    REQUIRE_FALSE(area.exact);
    std::map<std::pair<StringId, uint8_t>, std::vector<int64_t>> durations;
    for (const uint32_t l : asked.lanes) {
      const ViewLane& lane = timeline.lanes()[l];
      for (size_t i = 0; i < lane.count; ++i)
        if (lane.start(i) < window.to_ns() && (lane.end(i) > window.from_ns() || lane.start(i) >= window.from_ns()))
          durations[{lane.names[i], lane.kind(i)}].push_back(lane.dur(i));
    }
    CHECK(area.totals.size() == durations.size());
    for (const SelectionTotal& total : area.totals) {
      std::vector<int64_t>& own = durations[{total.name, total.kind}];
      REQUIRE(own.size() == total.count);
      CHECK(duration_bin(total.median_ns) == duration_bin(quantile(own, 0.5)));
      CHECK(duration_bin(total.p95_ns) == duration_bin(quantile(own, 0.95)));
    }
  }
}

TEST_CASE("timeline: counts of durations are those of every slice") {
  const Trace trace = random_ranks(61, 4, 300'000);
  const Timeline timeline(trace);
  const DurationCounts& counts = timeline.duration_counts();
  const NameKinds& kinds = timeline.name_kinds();
  std::map<std::pair<uint32_t, size_t>, int64_t> left;
  for (uint32_t place = 0; place < kinds.size(); ++place)
    for (size_t s = 0; s < counts.stretch_count(); ++s)
      for (const DurationCounts::Count& one : counts.counts(s, place)) {
        left[{place, one.bin}] += one.count;
        CHECK(counts.first_bin(place) <= one.bin);
        CHECK(one.bin <= counts.last_bin(place));
      }
  for (const ViewLane& lane : timeline.lanes())
    for (size_t i = 0; i < lane.count; ++i) --left[{kinds.place_of(lane, i), duration_bin(lane.dur(i))}];
  CHECK(std::all_of(left.begin(), left.end(), [](const auto& one) { return one.second == 0; }));
}

TEST_CASE("timeline: the order of a row keeps near and far numbers") {
  std::mt19937 random(5);
  RowSlices order;
  std::vector<uint32_t> expected;
  uint32_t at = 0;
  for (int k = 0; k < 10'000; ++k) {
    at += 1 + static_cast<uint32_t>(random() % (k % 3000 < 1000 ? 4 : k % 3000 < 2000 ? 1000 : 400'000));
    expected.push_back(at);
    order.push(at);
  }
  order.finish();
  for (size_t k = 0; k < expected.size(); ++k) REQUIRE(order.at(k) == expected[k]);
  CHECK(order.bytes() < expected.size() * 3);
}

TEST_CASE("timeline: slices of a window, and the longest where there are too many") {
  const Trace trace = random_slices(19, 5000, false);
  const Timeline timeline(trace);
  const TimeWindow all{0, static_cast<double>(timeline.span_ns() + 1)};
  CHECK(slices_within(timeline, {0}, all, 0, 10'000).slices.size() == 5000);
  const SliceWindow few = slices_within(timeline, {0}, all, 0, 300);
  CHECK_FALSE(few.complete);
  CHECK(few.min_ns > 0);
  REQUIRE(few.slices.size() <= 300);
  const ViewLane& lane = timeline.lanes()[0];
  size_t as_long = 0;
  for (size_t i = 0; i < lane.count; ++i) as_long += lane.dur(i) >= few.min_ns ? 1 : 0;
  CHECK(few.slices.size() == as_long);
  CHECK(slices_within(timeline, {0}, all, 200'000, 300).slices.empty());
}

TEST_CASE("timeline: cells are lanes by kind, with their micro-batches, steps and places") {
  testing::TraceSpec spec;
  spec.steps = 3;
  spec.dp = 2;
  const Trace trace = testing::make_1f1b_trace(spec);
  const Timeline timeline(trace);
  CHECK(timeline.lanes().size() == 8);
  CHECK(timeline.steps().size() == 3);
  CHECK(timeline.steps()[1].start_ns > timeline.steps()[0].end_ns);
  CHECK(timeline.slice_count() == timeline.trace().cells.size());
  for (uint32_t cell = 0; cell < timeline.trace().cells.size(); ++cell) {
    const SlicePlace place = timeline.place_of_cell(cell);
    REQUIRE(place);
    CHECK(timeline.lanes()[place.lane].cell_of(place.slice) == cell);
  }
}

TEST_CASE("timeline: cells that run beside each other keep their own time") {
  // The halves of an overlapped F&B, and a short cell within both.
  Trace trace;
  trace.clock = ClockState::kShared;
  trace.parts.emplace_back();
  trace.cells.add({0, 0, CellKind::kForward, 0, 4, 1000, 3000, kNoSlice});
  trace.cells.add({0, 0, CellKind::kBackward, 1, 2, 1000, 3000, kNoSlice});
  trace.cells.add({0, 0, CellKind::kWeightGrad, 0, 1, 1500, 2000, kNoSlice});
  trace.cells.sort();
  const Timeline timeline(trace);
  REQUIRE(timeline.lanes().size() == 1);
  CHECK(timeline.chunk_count() == 2);
  CHECK(timeline.lanes()[0].rows.size() == 3);
  CHECK(timeline.lanes()[0].lasting_rows == 3);
  const Selection area = select_area(timeline, {0}, {0, 5000}, 10);
  CHECK(area.totals.size() == 3);
  for (const SelectionTotal& total : area.totals) CHECK(total.self_ns == total.sum_ns);
}

TEST_CASE("timeline: rows in which nothing lasts are known") {
  Trace trace;
  trace.clock = ClockState::kShared;
  trace.parts.emplace_back();
  trace.cells.add({0, 0, CellKind::kRecvForward, 0, 1, 0, 3000, kNoSlice});
  trace.cells.add({0, 0, CellKind::kRecvBackward, 0, 0, 1000, 1000, kNoSlice});
  trace.cells.sort();
  const Timeline timeline(trace);
  REQUIRE(timeline.lanes().size() == 1);
  CHECK(timeline.lanes()[0].rows.size() == 2);
  CHECK(timeline.lanes()[0].lasting_rows == 1);
}

TEST_CASE("timeline: what a rank sends and what it receives are lanes of their own") {
  Trace trace;
  trace.clock = ClockState::kShared;
  trace.parts.emplace_back();
  for (const CellKind kind : {CellKind::kForward, CellKind::kSendForward, CellKind::kRecvForward,
                              CellKind::kSendBackward, CellKind::kRecvBackward, CellKind::kCollective})
    trace.cells.add({0, 0, kind, 0, 0, 1000 * static_cast<int64_t>(kind), 5000, kNoSlice});
  trace.cells.sort();
  const Timeline timeline(trace);
  std::vector<std::pair<std::string, size_t>> lanes;
  for (const ViewLane& lane : timeline.lanes()) lanes.emplace_back(lane.name, lane.count);
  CHECK(lanes ==
        std::vector<std::pair<std::string, size_t>>{{"compute", 1}, {"sends", 2}, {"receives", 2}, {"collectives", 1}});
}

TEST_CASE("timeline: times that no clock has are drawn at the edges, without overflow") {
  Trace trace = random_slices(23, 10, false);
  Slices& s = trace.parts[0].slices;
  s.start_ns = {INT64_MIN, INT64_MIN, -5, 0, 0, 7, 1000, INT64_MAX - 1, INT64_MAX, INT64_MAX};
  s.dur_ns = {INT64_MAX, INT64_MIN, 10, -3, 0, INT64_MAX, 5, INT64_MAX, INT64_MAX, 0};
  const Timeline timeline(trace);
  const ViewLane& lane = only_lane(timeline);
  for (size_t i = 0; i < lane.count; ++i) {
    CHECK(lane.start(i) >= 0);
    CHECK(lane.dur(i) >= 0);
    CHECK(lane.end(i) <= kLatestNs);
  }
  const TimeWindow all{0, static_cast<double>(timeline.span_ns())};
  for (const ViewRow& row : lane.rows) CHECK(row_coverage(lane, row, all, 100).size() <= row.kinds.size());
  CHECK(select_area(timeline, {0}, all, 10).slice_count > 0);
}

TEST_CASE("timeline: an empty trace is an empty timeline") {
  const Trace trace;
  const Timeline timeline(trace);
  CHECK(timeline.lanes().empty());
  CHECK(timeline.span_ns() == 0);
  CHECK(timeline.steps().empty());
}

TEST_CASE("timeline: a lane deeper than its rows counts what it hides") {
  Trace trace = random_slices(29, 300, false);
  Slices& s = trace.parts[0].slices;
  for (size_t i = 0; i < 300; ++i) {
    s.start_ns[i] = static_cast<int64_t>(i);
    s.dur_ns[i] = static_cast<int64_t>(1000 - 2 * i);
  }
  const Timeline timeline(trace);
  CHECK(only_lane(timeline).rows.size() == kMaxRowsOfLane);
  CHECK(only_lane(timeline).hidden == 300 - kMaxRowsOfLane);
}

}  // namespace stageline
