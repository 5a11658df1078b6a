// Finds the best stage for each layer: the cost of a layer in this run, and the contiguous split with which the order
// that ran takes the least time.
//
//   cost of a virtual stage = its own constant (embedding, head) + layers · cost of a layer there.
//
// The constants are what the first and the last virtual stage cost beyond their layers, when those are priced like the
// layers of the stages between. Where a stage between costs more, each of its layers is taken to cost more.
// Definitions: docs/analyses/what-if.md.
#pragma once

#include "model/schedule.h"
#include "pipeline/sums/stage_costs.h"

namespace stageline {

struct StageBytes;

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

// A message's time over each link of a pipeline, of the slowest replica.
struct SlowestLinks {
  std::vector<double> there, back;  // from stage s to s + 1, and from s + 1 to s
};
// `latencies` are those of OrderModel.
SlowestLinks slowest_links(const std::vector<double>& latencies, size_t stages);

// Cuts the same layers, in the same order, in new places: finds the split with which `order` takes the least time at
// these costs, replayed as a plan is (plan/split.h). Of splits that are as fast it takes the nearest to the present
// one. The chunks of a rank count with the rank's mean price of a layer. Every virtual stage keeps at least one layer;
// with a limit in `bytes`, the split fits. Nothing where none fits, or where the table of splits would be too large.
struct PlannedLayers {
  std::vector<int32_t> layers;
  double gap = 0;  // no split of these layers is faster by a larger share
};
std::optional<PlannedLayers> planned_layers(const Schedule& order, const StageCosts& stages, const LayerCosts& costs,
                                            const std::vector<int32_t>& layers, const SlowestLinks& links,
                                            double overlap, const StageBytes* bytes);
inline constexpr int32_t kMaxLayers = 100'000;
// Returns the split whose slowest rank is fastest, of those the nearest to the present one. It does not depend on the
// waits of the order, which mean costs give wrongly where cells differ and hosts are late. O(layers · stages).
std::vector<int32_t> level_layers(const StageCosts& stages, const LayerCosts& costs,
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

// Write the split as each framework does (Megatron: plan/search.h), with what holds the embedding first and the head
// last.
std::string torchtitan_split(
    const std::vector<int32_t>& layers);  // "tok_embeddings, layers.0–8 | … | layers.27–31, norm, output"
std::string paddle_seg_method(const std::vector<int32_t>& layers);  // "[0, 10, 19, 28, N]": the embedding is item 0
std::string layers_text(const std::vector<int32_t>& layers);        // "9, 9, 9, 5"

}  // namespace stageline
