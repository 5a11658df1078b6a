// Which layers belong on which stage: what a layer costs here, and the contiguous split whose slowest rank is fastest.
//
//   cost of a virtual stage = its own constant (embedding, head) + layers · cost of a layer there
//
// The constants are what the first and the last virtual stage cost beyond their layers at the price of the ones
// between; where a stage in the middle costs more, each of its layers does. Definitions: docs/analyses/what-if.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/schedule.h"

namespace stageline {

// Mean time of one micro-batch on a virtual stage, by direction: forward, backward (B or I), weight gradient.
inline constexpr size_t kDirections = 3;
using DirectionCost = std::array<double, kDirections>;

// A pipeline as its virtual stages, in the order in which a micro-batch passes them.
struct StageCosts {
  std::vector<DirectionCost> cost_ns;  // by virtual stage
  std::vector<int32_t> owner;          // by virtual stage: the rank that holds it
};

struct LayerCosts {
  std::vector<DirectionCost> constant_ns;   // by virtual stage: 0 but of the first and the last
  std::vector<DirectionCost> per_layer_ns;  // by virtual stage
  bool embedding = false, head = false;     // a constant stuck out
};

// A constant below this share of its stage's cost counts as noise.
inline constexpr double kLeastConstant = 0.03;

// `layers`: by virtual stage, each at least 1. Of two virtual stages the cheaper layer is the price of both. O(stages).
LayerCosts layer_costs(const StageCosts& stages, const std::vector<int32_t>& layers);

// The same layers in the same order, cut anew: the split with the least maximum over ranks of the sum of their virtual
// stages' costs; of equal ones that which moves least is looked for. Every virtual stage keeps one layer. At most
// kMostLayers. O(layers · log stages).
inline constexpr int32_t kMostLayers = 100'000;
std::vector<int32_t> balanced_layers(const StageCosts& stages, const LayerCosts& costs,
                                     const std::vector<int32_t>& layers);

// Splits on the way from one to another, a layer at a time from the stage that has most too many to the one that lacks
// most; evenly spaced ones where there are more than `most`, `to` the last. Means say which split is best on average;
// the replicas with the longest sequences, for which all others wait, may do better with fewer layers moved.
std::vector<std::vector<int32_t>> splits_between(const std::vector<int32_t>& from, const std::vector<int32_t>& to,
                                                 size_t most);

// New cost ÷ old cost of every virtual stage and direction when it gets `to` layers; 1 where it had no cost.
std::vector<DirectionCost> split_factors(const StageCosts& stages, const LayerCosts& costs,
                                         const std::vector<int32_t>& to);

// --layers: "32" or "8,8,8,8": per virtual stage, or per rank where every chunk of it holds as many. Errors: kUsage.
Result<std::vector<int32_t>> parse_layers(std::string_view text, int32_t ranks, int32_t chunks, ChunkLayout layout);

// The split in the words of the frameworks, with what holds embedding and head first and last.
std::string megatron_layout(const std::vector<int32_t>& layers);  // "Et*9|t*9|t*9|t*5L"
std::string torchtitan_split(
    const std::vector<int32_t>& layers);  // "tok_embeddings, layers.0–8 | … | layers.27–31, norm, output"
std::string paddle_seg_method(const std::vector<int32_t>& layers);  // "[0, 10, 19, 28, N]": the embedding is item 0
std::string layers_text(const std::vector<int32_t>& layers);        // "9, 9, 9, 5"

}  // namespace stageline
