#include "diagnosis/what_if/layer_split.h"

#include "diagnosis/what_if/stage_bytes.h"
#include "model/statistics.h"
#include "plan/split.h"

namespace stageline {
namespace {

constexpr int64_t kMaxTable = 4'000'000;  // layers · virtual stages
constexpr double kAsFast = 0.001;         // splits whose spans differ by less are as fast
constexpr int64_t kMinWork = 4'000'000;   // in replayed cells: some 0.2 s

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

// Moves layers back towards the present split as long as it stays as fast. Where many splits are as fast, the search
// may find any: 15, 14, 2, 1 where a heavy head decides and 10, 10, 11, 1 takes as long. Returns the split where no
// move of a layer brings it nearer, in squares of what stages have too many. `tries` bounds the replays.
std::vector<int32_t> nearest_split(const plan::PlanProblem& p, const plan::Plan& best, const std::vector<int32_t>& now,
                                   int64_t tries) {
  std::vector<int32_t> split = best.layers();
  const auto limit = std::llround(static_cast<double>(best.span_ns) * (1 + kAsFast));
  for (bool nearer = true; nearer;) {
    nearer = false;
    std::vector<std::tuple<int32_t, size_t, size_t>> moves;
    for (size_t a = 0; a < now.size(); ++a)
      for (size_t b = 0; b < now.size(); ++b)
        if (const int32_t apart = split[a] - now[a] - (split[b] - now[b]); apart > 1 && split[a] > 1)
          moves.emplace_back(-apart, a, b);
    std::ranges::sort(moves);
    for (const auto& [_, a, b] : moves) {
      if (tries-- <= 0) return split;
      --split[a], ++split[b];
      const auto plan = plan::price_split(p, split);
      nearer = plan && *plan && (*plan)->span_ns <= limit;
      if (nearer) break;
      ++split[a], --split[b];
    }
  }
  return split;
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

SlowestLinks slowest_links(const std::vector<double>& latencies, size_t stages) {
  SlowestLinks out;
  const size_t copies = stages == 0 ? 0 : latencies.size() / (2 * stages);
  for (size_t s = 0; s + 1 < stages && copies > 0; ++s) {
    double there = 0, back = 0;
    for (size_t k = 0; k < copies; ++k) {
      there = std::max(there, latencies[k * 2 * stages + 2 * (s + 1)]);
      back = std::max(back, latencies[k * 2 * stages + 2 * s + 1]);
    }
    out.there.push_back(there), out.back.push_back(back);
  }
  return out;
}

std::optional<PlannedLayers> planned_layers(const Schedule& order, const StageCosts& stages, const LayerCosts& costs,
                                            const std::vector<int32_t>& layers, const SlowestLinks& links,
                                            double overlap, const StageBytes* bytes) {
  const int64_t total = std::accumulate(layers.begin(), layers.end(), int64_t{0});
  const auto ranks = static_cast<int32_t>(order.ranks.size());
  if (total * std::ssize(layers) > kMaxTable || std::ssize(layers) != virtual_stage_count(order)) return {};
  plan::PlanProblem p;
  if (bytes && !bytes->full && bytes->model.layers() == total) {
    plan::Layout layout = bytes->layout;
    layout.pp = ranks;
    p = plan::problem_of(order, bytes->model, layout, bytes->options);
    if (std::ssize(bytes->beyond) == ranks) p.other_bytes = bytes->beyond;
  } else {
    p.schedule = order;
    p.kind_of = std::vector<uint8_t>(total, 0);
  }
  p.full = false;
  std::vector<DirectionCost> price(ranks, DirectionCost{});  // mean over the rank's chunks
  for (size_t s = 0; s < layers.size(); ++s)
    for (size_t d = 0; d < kDirections; ++d)
      price[stages.owner[s]][d] += costs.per_layer_ns[s][d] / static_cast<double>(order.sizes.chunks);
  DirectionCost cheapest = price.front();
  for (const DirectionCost& own : price)
    for (size_t d = 0; d < kDirections; ++d) cheapest[d] = std::min(cheapest[d], own[d]);
  const auto time_of = [](const DirectionCost& ns) {
    plan::LayerTime time;
    time.forward = std::llround(ns[0]), time.input = std::llround(ns[1]), time.weight = std::llround(ns[2]);
    return time;
  };
  p.times.kinds.assign(std::max<size_t>(1, p.bytes.kinds.size()), time_of(cheapest));
  p.times.embedding = time_of(costs.constant_ns.front()), p.times.head = time_of(costs.constant_ns.back());
  for (size_t s = 0; s < layers.size(); ++s) {
    p.times.slow.push_back({1, 1, 1});
    for (size_t d = 0; d < kDirections; ++d)
      if (cheapest[d] > 0) p.times.slow[s][d] = price[stages.owner[s]][d] / cheapest[d];
  }
  for (const double ns : links.there) p.times.there.push_back(std::llround(ns));
  for (const double ns : links.back) p.times.back.push_back(std::llround(ns));
  if (overlap != 1) p.times.overlap = overlap;
  const int64_t cells = sum_over<int64_t>(order.ranks, [](const RankOrder& rank) { return std::ssize(rank); });
  const int64_t work = std::max(kMinWork, 20 * cells);
  const plan::SplitAnswer answer = plan::best_split(p, {work, INT64_MAX});
  if (!answer.best) return {};
  PlannedLayers out{nearest_split(p, *answer.best, layers, work / std::max<int64_t>(1, cells)), 0};
  const auto plan = plan::price_split(p, out.layers);
  if (plan && *plan && (*plan)->span_ns > 0)
    out.gap = std::max(0.0, 1 - static_cast<double>(answer.bound_ns) / static_cast<double>((*plan)->span_ns));
  return out;
}

std::vector<int32_t> level_layers(const StageCosts& stages, const LayerCosts& costs,
                                  const std::vector<int32_t>& layers) {
  const size_t ranks = static_cast<size_t>(*std::ranges::max_element(stages.owner)) + 1;
  std::vector<double> load(ranks), price(ranks);  // of each rank; price: of a layer, mean over its chunks
  for (size_t s = 0; s < layers.size(); ++s)
    for (size_t d = 0; d < kDirections; ++d) {
      price[stages.owner[s]] += costs.per_layer_ns[s][d] * static_cast<double>(ranks) / layers.size();
      load[stages.owner[s]] += costs.constant_ns[s][d] + costs.per_layer_ns[s][d];
    }
  std::vector<int32_t> split(layers.size(), 1);
  const auto after = [&](size_t s) {
    const size_t rank = stages.owner[s];
    return std::tuple(load[rank] + price[rank], split[s] - layers[s], s);
  };
  const int64_t total = std::accumulate(layers.begin(), layers.end(), int64_t{0});
  for (int64_t left = total - std::ssize(layers); left > 0; --left) {
    size_t next = 0;
    for (size_t s = 1; s < layers.size(); ++s)
      if (after(s) < after(next)) next = s;
    ++split[next];
    load[stages.owner[next]] += price[stages.owner[next]];
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
