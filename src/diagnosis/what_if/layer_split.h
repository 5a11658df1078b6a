// Finds the best stage for each layer: the cost of a layer in this run, and the contiguous split whose slowest rank is
// fastest.
//
//   cost of a virtual stage = its own constant (embedding, head) + layers · cost of a layer there.
//
// The constants are what the first and the last virtual stage cost beyond their layers, when those are priced like the
// layers of the stages between. Where a stage between costs more, each of its layers is taken to cost more.
// Definitions: docs/analyses/what-if.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/schedule.h"
#include "pipeline/sums/virtual_stage_costs.h"

namespace stageline {

struct LayerCosts {
  std::vector<DirectionCost> constant_ns;   // for each virtual stage; 0 except for the first and the last
  std::vector<DirectionCost> per_layer_ns;  // for each virtual stage
  bool embedding = false, head = false;     // whether each constant is large enough to count
};

// A constant below this share of its stage's cost is taken as noise.
inline constexpr double kMinConstant = 0.03;

// `layers` has the number of layers of each virtual stage, each at least 1. When there are only two virtual stages, the
// cheaper layer is the price of both. O(stages).
LayerCosts layer_costs(const StageCosts& stages, const std::vector<int32_t>& layers);

// Cuts the same layers, in the same order, in new places: returns the split for which the largest sum of a rank's
// virtual stages' costs is least. Of equally good splits it looks for the one that moves fewest layers. Every virtual
// stage keeps at least one layer. At most kMaxLayers. O(layers · log stages).
inline constexpr int32_t kMaxLayers = 100'000;
std::vector<int32_t> balanced_layers(const StageCosts& stages, const LayerCosts& costs,
                                     const std::vector<int32_t>& layers);

// Returns the splits on the way from one to another, moving one layer at a time from the stage that has most too many
// to the stage that lacks most. Where there are more than `most`, evenly spaced ones are returned; `to` is always the
// last. Means say which split is best on average, but the replicas with the longest sequences, for which all others
// wait, may do better with fewer layers moved.
std::vector<std::vector<int32_t>> splits_between(const std::vector<int32_t>& from, const std::vector<int32_t>& to,
                                                 size_t max);

// Returns new cost ÷ old cost of every virtual stage and direction when stages get `to` layers; 1 where there was no
// cost.
std::vector<DirectionCost> split_factors(const StageCosts& stages, const LayerCosts& costs,
                                         const std::vector<int32_t>& to);

// Parses --layers: "32", or "8,8,8,8" with one number for each virtual stage, or for each rank where all its chunks
// have the same. Errors: kUsage.
Result<std::vector<int32_t>> parse_layers(std::string_view text, int32_t ranks, int32_t chunks, ChunkLayout layout);

// Write the split as each framework does (Megatron: plan/layouts.h), with what holds the embedding first and the head
// last.
std::string torchtitan_split(
    const std::vector<int32_t>& layers);  // "tok_embeddings, layers.0–8 | … | layers.27–31, norm, output"
std::string paddle_seg_method(const std::vector<int32_t>& layers);  // "[0, 10, 19, 28, N]": the embedding is item 0
std::string layers_text(const std::vector<int32_t>& layers);        // "9, 9, 9, 5"

}  // namespace stageline
