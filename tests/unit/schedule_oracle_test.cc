// Compares schedules with an oracle that shares nothing with the program: dependencies written out as a graph of cells,
// longest ways through it, memory by a sweep over time. It tests every name with random sizes and random costs,
// different for each rank.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "pipeline/replay/order_text.h"
#include "pipeline/replay/replay.h"
#include "pipeline/replay/schedule_numbers.h"
#include "schedules/registry.h"

using namespace stageline;

namespace {

// One cell of a rank's list.
struct Node {
  int32_t rank;
  size_t place;
};

// Way of a micro-batch through the ranks: which rank holds its k-th virtual stage, by the definition of the layouts.
int32_t stage_of(ChunkLayout layout, int32_t p, int32_t rank, int32_t chunk) {
  const int32_t down = rank, up = p - 1 - rank;
  if (layout == ChunkLayout::kBidirectional) return chunk == 0 ? down : up;
  return chunk * p + (layout == ChunkLayout::kV && chunk % 2 == 1 ? up : down);
}

struct Oracle {
  bool whole = true;  // every cell once, B or else I before W
  bool runs = true;   // no circle of waiting
  std::vector<std::vector<int64_t>> start, end;
  std::vector<int32_t> peak;  // chunks held at once, from the start of F to the end of what gives them back (B, W)
};

int64_t cost_of(const UnitCosts& costs, int32_t rank, const ScheduleCell& cell) {
  const CellKind kind = cell.actions()[0].kind;
  const int64_t base = cell.overlapped()               ? costs.overlapped_ns
                       : kind == CellKind::kForward    ? costs.forward_ns
                       : kind == CellKind::kInputGrad  ? costs.input_ns
                       : kind == CellKind::kWeightGrad ? costs.weight_ns
                                                       : costs.backward_ns;
  return base * (10 + rank % 3);
}

Oracle judge(const Schedule& s, const UnitCosts& costs) {
  Oracle out;
  const int32_t p = s.sizes.stages, m = s.sizes.micro_batches, v = s.sizes.chunks;
  const bool two_ways = s.layout == ChunkLayout::kBidirectional;
  const int32_t last = two_ways ? p - 1 : p * v - 1;
  // Maps (micro-batch, virtual stage, what: 0 F, 1 B or I, 2 W) to its cell. With two ways a micro-batch has one.
  std::map<std::tuple<int32_t, int32_t, int>, Node> at;
  std::map<std::tuple<int32_t, int32_t>, bool> split;
  for (int32_t r = 0; r < p; ++r)
    for (size_t i = 0; i < s.ranks[r].size(); ++i)
      for (const Action& a : s.ranks[r][i].actions()) {
        const int what = a.kind == CellKind::kForward ? 0 : a.kind == CellKind::kWeightGrad ? 2 : 1;
        const int32_t stage = stage_of(s.layout, p, r, a.chunk);
        out.whole &= a.micro_batch >= 0 && a.micro_batch < m && a.chunk >= 0 && a.chunk < v;
        out.whole &= at.emplace(std::tuple(a.micro_batch, stage, what), Node{r, i}).second;
        if (a.kind == CellKind::kInputGrad) split[{a.micro_batch, stage}] = true;
      }
  size_t expected = 0;
  for (int32_t mb = 0; mb < m; ++mb)
    for (int32_t stage = 0; stage <= last; ++stage) {
      for (const int what : {0, 1}) out.whole &= at.contains({mb, stage, what});
      const bool is_split = split.contains({mb, stage});
      out.whole &= at.contains({mb, stage, 2}) == is_split;
      expected += is_split ? 3 : 2;
    }
  out.whole &= at.size() == expected;
  if (!out.whole) return out;
  // Longest ways, by going over all cells until nothing moves: slow, and hard to get wrong.
  size_t cells = 0;
  for (const RankOrder& order : s.ranks) {
    out.start.emplace_back(order.size(), 0);
    out.end.emplace_back(order.size(), 0);
    cells += order.size();
  }
  const auto end_of = [&](const Node& n) { return out.end[n.rank][n.place]; };
  bool moved = true;
  for (size_t round = 0; moved && round <= cells + 1; ++round) {
    moved = false;
    for (int32_t r = 0; r < p; ++r) {
      const auto rank = static_cast<size_t>(r);
      for (size_t i = 0; i < s.ranks[rank].size(); ++i) {
        const ScheduleCell& cell = s.ranks[rank][i];
        int64_t start = i > 0 ? out.end[rank][i - 1] : 0;
        const auto after = [&](int32_t mb, int32_t stage, int what) {
          const Node& n = at.at({mb, stage, what});
          if (n.rank == r && n.place == i) return;  // the other half of one cell
          start = std::max(start, end_of(n) + (n.rank == r ? 0 : costs.latency_ns));
        };
        for (const Action& a : cell.actions()) {
          const int32_t stage = stage_of(s.layout, p, r, a.chunk);
          if (a.kind == CellKind::kForward) {
            if (stage > 0) after(a.micro_batch, stage - 1, 0);
          } else if (a.kind == CellKind::kWeightGrad) {
            after(a.micro_batch, stage, 1);
          } else if (stage < last) {
            after(a.micro_batch, stage + 1, 1);
          } else {
            after(a.micro_batch, stage, 0);
          }
        }
        const int64_t end = start + cost_of(costs, r, cell);
        moved |= start != out.start[rank][i] || end != out.end[rank][i];
        out.start[rank][i] = start;
        out.end[rank][i] = end;
      }
    }
  }
  out.runs = !moved;
  for (int32_t r = 0; r < p; ++r) {
    std::vector<int32_t> change;  // by place: a cell of two takes one and gives one back, and holds both meanwhile
    int32_t held = 0, max = 0;
    for (const ScheduleCell& cell : s.ranks[r]) {
      for (const Action& a : cell.actions()) held += a.kind == CellKind::kForward;
      max = std::max(max, held);
      for (const Action& a : cell.actions()) held -= a.kind == CellKind::kBackward || a.kind == CellKind::kWeightGrad;
    }
    out.whole &= held == 0;
    out.peak.push_back(max);
  }
  return out;
}

struct Draw {
  std::mt19937 random;
  int operator()(int min, int max) { return std::uniform_int_distribution<int>(min, max)(random); }
};

}  // namespace

TEST_CASE("schedules beside an oracle: order, times and memory of every name at many sizes") {
  Draw pick{std::mt19937(23)};
  std::map<std::string, int> ran, waiting;
  for (int round = 0; round < 40; ++round)
    for (const ScheduleDef* def : schedules()) {
      const std::string name = def->name;
      ScheduleSizes sizes{.stages = pick(1, 9), .micro_batches = pick(1, 26)};
      if (name == "dualpipe") sizes.stages = 2 * pick(1, 4), sizes.micro_batches = 2 * pick(sizes.stages / 2, 12);
      if (name.starts_with("dualpipe-v")) sizes.stages = pick(1, 5), sizes.micro_batches = pick(2 * sizes.stages, 24);
      sizes.chunks = def->max_chunks == 64 ? pick(1, 5) : def->default_chunks;
      if (def->grouped && pick(0, 1) == 0) sizes.group = pick(1, 12);
      if (name == "dualpipe-v-mindspeed") sizes.dw_detach = pick(0, 1) == 1;
      if (name == "zbvpp") sizes.plan = {pick(1, 60), pick(1, 60), pick(1, 60), pick(0, 60)};
      CAPTURE(name);
      CAPTURE(sizes.stages);
      CAPTURE(sizes.micro_batches);
      CAPTURE(sizes.chunks);
      CAPTURE(sizes.group);
      const Result<Schedule> schedule = make_schedule(name, sizes);
      if (!schedule) continue;
      UnitCosts costs{pick(1, 30), pick(1, 30), pick(1, 30), 0, 0, pick(0, 2) == 0 ? 0 : pick(1, 90)};
      costs.backward_ns = costs.input_ns + costs.weight_ns;
      costs.overlapped_ns = std::max<int64_t>(costs.forward_ns, costs.backward_ns) + pick(0, 9);
      const Oracle oracle = judge(*schedule, costs);
      CHECK(oracle.whole);
      ReplayCosts each;
      each.cell_ns = [&](int32_t rank, const ScheduleCell& cell) { return cost_of(costs, rank, cell); };
      each.latency_ns = costs.latency_ns;
      const auto times = replay(*schedule, each);
      CHECK(static_cast<bool>(times) == oracle.runs);
      if (!times || !oracle.runs) {
        CHECK(def->grouped);  // groups smaller than the stages, or a last one that is short
        ++waiting[name];
        continue;
      }
      ++ran[name];
      const ScheduleNumbers numbers = schedule_numbers(*schedule, *times);
      int64_t span = 0;
      for (size_t r = 0; r < oracle.end.size(); ++r) {
        REQUIRE((*times)[r].size() == oracle.end[r].size());
        for (size_t i = 0; i < oracle.end[r].size(); ++i) {
          CHECK((*times)[r][i].start_ns == oracle.start[r][i]);
          CHECK((*times)[r][i].end_ns == oracle.end[r][i]);
          span = std::max(span, oracle.end[r][i]);
        }
        CHECK(numbers.ranks[r].activations == oracle.peak[r]);
      }
      CHECK(numbers.span_ns == span);
    }
  for (const ScheduleDef* def : schedules()) {
    CAPTURE(std::string(def->name));
    CHECK(ran[def->name] >= 12);
  }
  CHECK(waiting["vpp"] > 0);
}

TEST_CASE("schedules beside an oracle: a spoilt order is refused, or is one") {
  Draw pick{std::mt19937(31)};
  int taken = 0, refused = 0;
  for (int round = 0; round < 1500; ++round) {
    const ScheduleDef* def = schedules()[static_cast<size_t>(round) % schedules().size()];
    const Schedule schedule =
        *make_schedule(def->name, {.stages = 2, .micro_batches = 4, .chunks = def->default_chunks});
    const bool torch = schedule.layout != ChunkLayout::kBidirectional && pick(0, 1) == 1;
    std::string text = torch ? *torch_csv(schedule) : order_csv(schedule);
    for (int edits = pick(1, 3); edits > 0; --edits) {
      const auto at = [&] { return static_cast<size_t>(pick(0, static_cast<int>(text.size()) - 1)); };
      const size_t a = at(), b = at();
      switch (pick(0, 5)) {
        case 0: text.erase(a, static_cast<size_t>(pick(1, 6))); break;
        case 1: text.insert(a, 1, "0123456789,;()\n\"FBIW-\0\xff"[pick(0, 21)]); break;
        case 2: text[a] = static_cast<char>(pick(0, 255)); break;
        case 3: text.resize(a + 1); break;
        case 4: std::swap(text[a], text[b]); break;
        default: text.insert(a, text.substr(b, 12));
      }
      if (text.empty()) text = "x";
    }
    const auto read = read_order(text, "spoilt.csv", std::nullopt);
    if (!read) {
      CHECK_FALSE(read.error().what.empty());
      CHECK(read.error().where.file == "spoilt.csv");
      ++refused;
      continue;
    }
    const Oracle oracle = judge(read->schedule, UnitCosts{});
    CHECK(oracle.whole);
    CHECK(oracle.runs);
    ++taken;
  }
  CHECK(taken > 10);
  CHECK(refused > 300);
}
