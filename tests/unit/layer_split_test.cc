#include "diagnosis/what_if/layer_split.h"

#include <doctest/doctest.h>

using namespace stageline;

namespace {

StageCosts stages_of(std::vector<DirectionCost> costs) {
  StageCosts stages;
  for (size_t s = 0; s < costs.size(); ++s) stages.owner.push_back(static_cast<int32_t>(s));
  stages.cost_ns = std::move(costs);
  return stages;
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
  // 35 layers' cost over four stages: 9, 9, 9 and 8.
  const std::vector<int32_t> then = balanced_layers(stages, costs, now);
  CHECK(then[3] == 6);
  CHECK(then[0] + then[1] + then[2] == 26);
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
  // Loads 4.57 each would be even: the slow stage gets 2 or 3 of the 16.
  const std::vector<int32_t> then = balanced_layers(stages, costs, {4, 4, 4, 4});
  CHECK(then[1] == 2);
  CHECK(then[0] + then[2] + then[3] == 14);
}

TEST_CASE("layers: an even pipeline stays as it is, whatever its chunks") {
  StageCosts stages = stages_of({{2, 4, 0}, {2, 4, 0}, {2, 4, 0}, {2, 4, 0}});
  CHECK(balanced_layers(stages, layer_costs(stages, {3, 3, 3, 3}), {3, 3, 3, 3}) == std::vector<int32_t>{3, 3, 3, 3});
  stages.owner = {0, 1, 1, 0};  // a V of two ranks
  CHECK(balanced_layers(stages, layer_costs(stages, {3, 3, 3, 3}), {3, 3, 3, 3}) == std::vector<int32_t>{3, 3, 3, 3});
  // With a head on rank 0's second chunk its other chunk can give way too.
  stages.cost_ns[3] = {4, 8, 0};
  const LayerCosts costs = layer_costs(stages, {3, 3, 3, 3});
  const std::vector<int32_t> then = balanced_layers(stages, costs, {3, 3, 3, 3});
  CHECK(then[0] + then[3] + 3 == doctest::Approx(then[1] + then[2]).epsilon(0.15));
  CHECK(then[0] + then[1] + then[2] + then[3] == 12);
}

TEST_CASE("layers: of equal costs what moves least") {
  // Loads that cannot be even: 10 layers on 4 stages, as they are now.
  const StageCosts stages = stages_of({{2, 0, 0}, {3, 0, 0}, {2, 0, 0}, {3, 0, 0}});
  LayerCosts costs;
  costs.constant_ns.assign(4, {});
  costs.per_layer_ns.assign(4, {1, 0, 0});
  CHECK(balanced_layers(stages, costs, {2, 3, 2, 3}) == std::vector<int32_t>{2, 3, 2, 3});
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
