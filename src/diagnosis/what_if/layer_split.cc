#include "diagnosis/what_if/layer_split.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "base/number.h"
#include "base/text.h"
#include "pipeline/sums/stage_costs.h"
#include "plan/pipeline.h"

namespace stageline {
namespace {

double direction_sum(const DirectionCost& cost) { return cost[0] + cost[1] + cost[2]; }

// Returns the price of a layer on the stages between the first and the last; with two virtual stages, the cheaper
// one's.
double usual_layer_ns(const StageCosts& stages, const std::vector<int32_t>& layers, size_t direction) {
  const size_t count = layers.size();
  std::vector<double> prices;
  const auto price = [&](size_t s) { return stages.cost_ns[s][direction] / layers[s]; };
  if (count <= 2) {
    double min = price(0);
    for (size_t s = 1; s < count; ++s) min = std::min(min, price(s));
    return min;
  }
  for (size_t s = 1; s + 1 < count; ++s) prices.push_back(price(s));
  return median_of(std::move(prices));
}

}  // namespace

LayerCosts layer_costs(const StageCosts& stages, const std::vector<int32_t>& layers) {
  LayerCosts costs;
  const size_t count = layers.size();
  costs.constant_ns.assign(count, {});
  costs.per_layer_ns.assign(count, {});
  for (size_t d = 0; d < kDirections; ++d) {
    const double usual = usual_layer_ns(stages, layers, d);
    for (size_t s = 0; s < count; ++s) {
      const double cost = stages.cost_ns[s][d];
      double constant = 0;
      const bool end = count > 1 && (s == 0 || s + 1 == count);
      if (end && cost - usual * layers[s] > kMinConstant * cost) {
        constant = cost - usual * layers[s];
        (s == 0 ? costs.embedding : costs.head) = true;
      }
      costs.constant_ns[s][d] = constant;
      costs.per_layer_ns[s][d] = (cost - constant) / layers[s];
    }
  }
  return costs;
}

std::vector<int32_t> balanced_layers(const StageCosts& stages, const LayerCosts& costs,
                                     const std::vector<int32_t>& layers) {
  const size_t count = layers.size();
  int64_t total = 0;
  for (const int32_t n : layers) total += n;
  std::vector<int32_t> split(count, 1);
  int32_t ranks = 0;
  for (const int32_t owner : stages.owner) ranks = std::max(ranks, owner + 1);
  std::vector<double> load(ranks, 0);  // for each rank
  for (size_t s = 0; s < count; ++s)
    load[stages.owner[s]] += direction_sum(costs.constant_ns[s]) + direction_sum(costs.per_layer_ns[s]);
  // The cost of a rank grows by the same amount with every layer it gets. So the layer of every turn goes to the
  // rank with the smallest load after it. A load may have grown since its entry was made; such an entry is put
  // back.
  struct Entry {
    double load;
    int32_t surplus;  // layers it has beyond its present number; of equal loads the one that moves fewest is taken
    uint32_t stage;
    bool operator>(const Entry& other) const {
      return std::tie(load, surplus, stage) > std::tie(other.load, other.surplus, other.stage);
    }
  };
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> next;
  // The chunks of a rank all count with the rank's mean price of a layer. So its layers are spread evenly over its
  // chunks, instead of gathering in one that is cheaper by chance.
  std::vector<double> price(ranks, 0), chunks(ranks, 0);
  for (size_t s = 0; s < count; ++s) {
    price[stages.owner[s]] += direction_sum(costs.per_layer_ns[s]);
    ++chunks[stages.owner[s]];
  }
  const auto entry = [&](size_t s) {
    const size_t rank = stages.owner[s];
    return Entry{load[rank] + price[rank] / chunks[rank], split[s] - layers[s], static_cast<uint32_t>(s)};
  };
  for (size_t s = 0; s < count; ++s) next.push(entry(s));
  for (int64_t left = std::min<int64_t>(total, kMaxLayers) - static_cast<int64_t>(count); left > 0;) {
    const Entry top = next.top();
    next.pop();
    const Entry now = entry(top.stage);
    if (now > top) {
      next.push(now);
      continue;
    }
    ++split[top.stage];
    load[stages.owner[top.stage]] += direction_sum(costs.per_layer_ns[top.stage]);
    --left;
    next.push(entry(top.stage));
  }
  return split;
}

std::vector<std::vector<int32_t>> splits_between(const std::vector<int32_t>& from, const std::vector<int32_t>& to,
                                                 size_t max) {
  int64_t moves = 0;
  for (size_t s = 0; s < from.size(); ++s) moves += std::max(0, to[s] - from[s]);
  using Entry = std::pair<int32_t, size_t>;  // (layers too many or lacking, stage)
  std::priority_queue<Entry> over, under;
  for (size_t s = 0; s < from.size(); ++s) {
    if (from[s] > to[s]) over.emplace(from[s] - to[s], s);
    if (from[s] < to[s]) under.emplace(to[s] - from[s], s);
  }
  std::vector<std::vector<int32_t>> splits;
  std::vector<int32_t> now = from;
  const int64_t wanted = max;
  for (int64_t move = 1; move <= moves; ++move) {
    const Entry out = over.top(), in = under.top();
    over.pop();
    under.pop();
    --now[out.second];
    ++now[in.second];
    if (out.first > 1) over.emplace(out.first - 1, out.second);
    if (in.first > 1) under.emplace(in.first - 1, in.second);
    if (moves <= wanted || move * wanted / moves > (move - 1) * wanted / moves) splits.push_back(now);
  }
  return splits;
}

std::vector<DirectionCost> split_factors(const StageCosts& stages, const LayerCosts& costs,
                                         const std::vector<int32_t>& to) {
  std::vector<DirectionCost> factors(to.size());
  for (size_t s = 0; s < to.size(); ++s)
    for (size_t d = 0; d < kDirections; ++d) {
      const double old_ns = stages.cost_ns[s][d];
      factors[s][d] = old_ns > 0 ? (costs.constant_ns[s][d] + costs.per_layer_ns[s][d] * to[s]) / old_ns : 1;
    }
  return factors;
}

Result<std::vector<int32_t>> parse_layers(std::string_view text, int32_t ranks, int32_t chunks, ChunkLayout layout) {
  const auto bad = [&](const std::string& why) {
    return make_error(
        ErrorCode::kUsage, "--layers " + valid_utf8(text) + ": " + why,
        "write the number of layers of the whole model, --layers 32, or of every stage, --layers 8,8,8,8");
  };
  std::vector<int32_t> given;
  int64_t total = 0;
  for (const std::string_view word : split(text, ',')) {
    const auto number = parse_int(trim(word));
    if (!number || *number < 1 || *number > kMaxLayers)
      return bad("\"" + valid_utf8(word) + "\" is not a number from 1 to " + std::to_string(kMaxLayers));
    given.push_back(static_cast<int32_t>(*number));
    total += *number;
  }
  if (total > kMaxLayers) return bad("more than " + std::to_string(kMaxLayers) + " layers");
  const bool two_ways = layout == ChunkLayout::kBidirectional;
  const int32_t per_rank = two_ways ? 1 : chunks;
  const int32_t stages = ranks * per_rank;
  const auto count = static_cast<int32_t>(given.size());
  if (count == 1 && stages > 1) {
    if (given[0] < stages) return bad("fewer layers than the " + std::to_string(stages) + " parts of the pipeline");
    return plan::even_layers(given[0], stages);
  }
  if (count == stages) return given;
  if (count != ranks) return bad("the run has " + std::to_string(ranks) + " stages, here are " + std::to_string(count));
  Schedule shape;
  shape.sizes.stages = ranks;
  shape.sizes.chunks = chunks;
  shape.layout = layout;
  std::vector<int32_t> of_chunks(stages);
  for (int32_t r = 0; r < ranks; ++r)
    for (int32_t c = 0; c < per_rank; ++c) {
      const int32_t n = given[r] / per_rank + (c < given[r] % per_rank ? 1 : 0);
      if (n < 1) return bad("stage " + std::to_string(r) + " has fewer layers than chunks");
      of_chunks[virtual_stage(shape, r, c)] = n;
    }
  return of_chunks;
}

std::string torchtitan_split(const std::vector<int32_t>& layers) {
  std::string text = "tok_embeddings, ";
  int32_t first = 0;
  for (size_t s = 0; s < layers.size(); ++s) {
    if (s > 0) text += " | ";
    text += "layers." + std::to_string(first);
    if (layers[s] > 1) text += "–" + std::to_string(first + layers[s] - 1);
    first += layers[s];
  }
  return text + ", norm, output";
}

std::string paddle_seg_method(const std::vector<int32_t>& layers) {
  std::string text = "[0";
  int32_t first = 1;  // item 0 is the embedding
  for (size_t s = 0; s + 1 < layers.size(); ++s) text += ", " + std::to_string(first += layers[s]);
  return text + ", N]";
}

std::string layers_text(const std::vector<int32_t>& layers) {
  std::string text;
  for (const int32_t n : layers) append_item(text, std::to_string(n));
  return text;
}

}  // namespace stageline
