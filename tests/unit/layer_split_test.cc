#include "diagnosis/what_if/layer_split.h"

#include <doctest/doctest.h>

#include <cmath>

#include "pipeline/replay/replay.h"
#include "schedules/registry.h"

using namespace stageline;

namespace {

StageCosts stages_of(std::vector<DirectionCost> costs) {
  StageCosts stages;
  for (size_t s = 0; s < costs.size(); ++s) stages.owner.push_back(static_cast<int32_t>(s));
  stages.cost_ns = std::move(costs);
  return stages;
}

// The split of 1F1B or, with two chunks, of VPP.
std::vector<int32_t> planned(const StageCosts& stages, const LayerCosts& costs, const std::vector<int32_t>& layers,
                             int32_t micro_batches = 64, const char* schedule = "1f1b", int32_t chunks = 1) {
  ScheduleSizes sizes;
  sizes.stages = static_cast<int32_t>(layers.size()) / chunks, sizes.micro_batches = micro_batches;
  sizes.chunks = chunks;
  const auto order = make_schedule(schedule, sizes);
  REQUIRE(order);
  StageCosts wide = stages;
  LayerCosts long_ones = costs;  // in units of 1 µs
  for (auto* list : {&wide.cost_ns, &long_ones.constant_ns, &long_ones.per_layer_ns})
    for (DirectionCost& cost : *list)
      for (double& ns : cost) ns *= 1000;
  const auto found = planned_layers(*order, wide, long_ones, layers, {}, 1, nullptr);
  REQUIRE(found);
  CHECK(found->gap >= 0);
  return found->layers;
}

}  // namespace

TEST_CASE("layers: a heavy head is a constant of the last stage") {
  // A layer costs 1 forward and 2 backward; the head 3 and 6.
  const StageCosts stages = stages_of({{8, 16, 0}, {8, 16, 0}, {8, 16, 0}, {11, 22, 0}});
  const std::vector<int32_t> now = {8, 8, 8, 8};
  const LayerCosts costs = layer_costs(stages, now);
  CHECK(costs.head);
  CHECK_FALSE(costs.embedding);
  CHECK(costs.constant_ns[3] == DirectionCost{3, 6, 0});
  CHECK(costs.per_layer_ns[3] == DirectionCost{1, 2, 0});
  CHECK(costs.constant_ns[0] == DirectionCost{});
  // 35 layers' cost over four stages: the slowest takes 9 in any case, and less on the last one shortens the way.
  const std::vector<int32_t> then = planned(stages, costs, now);
  CHECK(then[3] == 5);
  CHECK(then[0] + then[1] + then[2] == 27);
  for (size_t s = 0; s < 3; ++s) CHECK(then[s] <= 9);
  const auto factors = split_factors(stages, costs, {9, 9, 9, 5});
  CHECK(factors[0][0] == doctest::Approx(9.0 / 8));
  CHECK(factors[3][0] == doctest::Approx(8.0 / 11));
  CHECK(factors[3][1] == doctest::Approx(16.0 / 22));
  CHECK(factors[3][2] == 1);  // no weight gradients apart
}

TEST_CASE("layers: a stage between the ends keeps its own price of a layer") {
  const StageCosts stages = stages_of({{4, 0, 0}, {8, 0, 0}, {4, 0, 0}, {4, 0, 0}});
  const LayerCosts costs = layer_costs(stages, {4, 4, 4, 4});
  CHECK(costs.per_layer_ns[1][0] == 2);
  // Loads 4.57 each would be even: the others take 5 with 14 and with 15 of the 16, and the way is shorter with 15.
  const std::vector<int32_t> then = planned(stages, costs, {4, 4, 4, 4});
  CHECK(then[1] == 1);
  CHECK(then[0] + then[2] + then[3] == 15);
  const std::vector<int32_t> level = level_layers(stages, costs, {4, 4, 4, 4});
  CHECK(level[1] == 2);
  CHECK(level[0] + level[2] + level[3] == 14);
}

TEST_CASE("layers: an even pipeline stays as it is, whatever its chunks") {
  StageCosts stages = stages_of({{2, 4, 0}, {2, 4, 0}, {2, 4, 0}, {2, 4, 0}});
  const std::vector<int32_t> even = {3, 3, 3, 3};
  CHECK(planned(stages, layer_costs(stages, even), even) == even);
  stages.owner = {0, 1, 0, 1};
  CHECK(planned(stages, layer_costs(stages, even), even, 64, "vpp", 2) == even);
  // A head on rank 1's second chunk lets its other chunk give way too.
  stages.cost_ns[3] = {4, 8, 0};
  const std::vector<int32_t> then = planned(stages, layer_costs(stages, even), even, 64, "vpp", 2);
  CHECK(then[1] + then[3] + 3 == doctest::Approx(then[0] + then[2]).epsilon(0.15));
  CHECK(then[0] + then[1] + then[2] + then[3] == 12);
}

TEST_CASE("layers: no split of all is faster than the planned one") {
  // Every split of 14 layers over four stages, with a slow rank, a head and slow links.
  StageCosts stages = stages_of({{300, 600, 0}, {450, 900, 0}, {300, 600, 0}, {500, 1000, 0}});
  const std::vector<int32_t> now = {4, 4, 3, 3};
  const LayerCosts costs = layer_costs(stages, now);
  ScheduleSizes sizes;
  sizes.stages = 4, sizes.micro_batches = 6;
  const auto order = make_schedule("1f1b", sizes);
  REQUIRE(order);
  const SlowestLinks links{{50, 200, 10}, {50, 100, 10}};
  const auto span = [&](const std::vector<int32_t>& layers) {
    ReplayCosts at;
    at.cell_ns = [&](int32_t rank, const ScheduleCell& cell) {
      const auto direction = [&](size_t d) {
        return costs.constant_ns[rank][d] + costs.per_layer_ns[rank][d] * layers[rank];
      };
      return std::llround(cell.actions()[0].kind == CellKind::kForward ? direction(0) : direction(1) + direction(2));
    };
    at.arrival_ns = [&](int32_t from, int32_t to, const Action&, int64_t sent) {
      return sent + std::llround(from < to ? links.there[from] : links.back[to]);
    };
    const auto cells = replay(*order, at);
    REQUIRE(cells);
    int64_t end = 0;
    for (const auto& rank : *cells) end = std::max(end, rank.back().end_ns);
    return end;
  };
  int64_t best = INT64_MAX;
  for (int32_t a = 1; a < 12; ++a)
    for (int32_t b = 1; a + b < 13; ++b)
      for (int32_t c = 1; a + b + c < 14; ++c) best = std::min(best, span({a, b, c, 14 - a - b - c}));
  const auto found = planned_layers(*order, stages, costs, now, links, 1, nullptr);
  REQUIRE(found);
  CHECK(found->gap == 0);
  CHECK(static_cast<double>(span(found->layers)) == doctest::Approx(static_cast<double>(best)).epsilon(0.002));
  CHECK(span(now) > best);
}

TEST_CASE("layers: of equal costs the present split stays") {
  const StageCosts stages = stages_of({{2, 0, 0}, {3, 0, 0}, {2, 0, 0}, {3, 0, 0}});
  LayerCosts costs;
  costs.constant_ns.assign(4, {});
  costs.per_layer_ns.assign(4, {1, 2, 0});
  CHECK(planned(stages, costs, {3, 3, 3, 3}) == std::vector<int32_t>{3, 3, 3, 3});
}

TEST_CASE("layers: splits between two") {
  const auto splits = splits_between({8, 8, 8, 8}, {10, 9, 9, 4}, 8);
  REQUIRE(splits.size() == 4);
  CHECK(splits.front() == std::vector<int32_t>{9, 8, 8, 7});
  CHECK(splits.back() == std::vector<int32_t>{10, 9, 9, 4});
  CHECK(splits_between({8, 8}, {8, 8}, 8).empty());
  const auto few = splits_between({100, 1}, {1, 100}, 8);
  CHECK(few.size() == 8);
  CHECK(few.back() == std::vector<int32_t>{1, 100});
}

TEST_CASE("layers: --layers") {
  const auto of = [](const char* text, int32_t ranks, int32_t chunks = 1, ChunkLayout layout = ChunkLayout::kLoop) {
    const auto layers = parse_layers(text, ranks, chunks, layout);
    return layers ? *layers : std::vector<int32_t>{};
  };
  CHECK(of("32", 4) == std::vector<int32_t>{8, 8, 8, 8});
  CHECK(of("34", 4) == std::vector<int32_t>{9, 9, 8, 8});
  CHECK(of("8, 7,9,8", 4) == std::vector<int32_t>{8, 7, 9, 8});
  CHECK(of("8,6", 2, 2) == std::vector<int32_t>{4, 3, 4, 3});                   // chunk 1 follows in a loop
  CHECK(of("8,6", 2, 2, ChunkLayout::kV) == std::vector<int32_t>{4, 3, 3, 4});  // and comes back in a V
  CHECK(of("4,3,3,4", 2, 2, ChunkLayout::kV) == std::vector<int32_t>{4, 3, 3, 4});
  for (const char* bad : {"", "0", "3", "8,8", "8,x,8,8", "-1", "1000000", "8,8,8,8,8", "1e3"}) {
    CAPTURE(bad);
    const auto wrong = parse_layers(bad, 4, 1, ChunkLayout::kLoop);
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().hint.find("--layers 8,8,8,8") != std::string::npos);
  }
}

TEST_CASE("layers: the split in the frameworks' words") {
  const std::vector<int32_t> split = {9, 9, 1, 5};
  CHECK(torchtitan_split(split) == "tok_embeddings, layers.0–8 | layers.9–17 | layers.18 | layers.19–23, norm, output");
  CHECK(paddle_seg_method(split) == "[0, 10, 19, 20, N]");
  CHECK(layers_text(split) == "9, 9, 1, 5");
}
