#include "pipeline/cells/problems.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {
namespace {

constexpr size_t kMaxMissing = 4096;

// Returns "pp", "tp", "cp", "dp" or "ep" for what people and Megatron call a group; "" for groups over several
// dimensions.
std::string_view dimension_of(const std::string& purpose) {
  static const std::map<std::string, std::string_view, std::less<>> known = {
      {"pp", "pp"}, {"pipeline", "pp"}, {"tp", "tp"}, {"tensor", "tp"}, {"cp", "cp"}, {"context", "cp"},
      {"dp", "dp"}, {"data", "dp"},     {"ep", "ep"}, {"expert", "ep"}, {"exp", "ep"}};
  const auto at = known.find(purpose);
  return at == known.end() ? std::string_view{} : at->second;
}

// The index of a place in a dimension, or the size of a map in it.
template <class Dimensions> auto& along(Dimensions& of, std::string_view dimension) {
  return dimension == "tp"   ? of.tp
         : dimension == "cp" ? of.cp
         : dimension == "ep" ? of.ep
         : dimension == "dp" ? of.dp
                             : of.pp;
}

// Returns the order of dimensions, the fastest first, in which rank numbers give these places. Megatron's is tried
// first.
std::string order_of(const Trace& trace, const RankMap& map) {
  if (map.tp < 1 || map.cp < 1 || map.dp < 1 || map.pp < 1) return {};
  std::array<std::string_view, 4> words = {"tp", "cp", "dp", "pp"};
  std::array<int, 4> index = {0, 1, 2, 3};  // this order first, then the other permutations
  do {
    bool fits = true;
    for (size_t p = 0; p < trace.parts.size() && fits; ++p) {
      int64_t rest = trace.parts[p].rank;
      RankPlace place = map.places[p];
      for (const int w : index) {
        const int64_t size = along(map, words[w]);
        const int32_t stated = along(place, words[w]);
        fits = fits && (stated == kUnknown || stated == rest % size);
        rest /= size;
      }
      fits = fits && rest == 0;
    }
    if (!fits) continue;
    std::string order;
    for (const int w : index) {
      append_item(order, words[w], "-");
      if (words[w] == "cp") order += "-ep";
    }
    return order;
  } while (std::next_permutation(index.begin(), index.end()));
  return {};
}

Text contradiction(const Trace& trace, const RankLayoutOptions& options, const RankLayout& stated,
                   const RankLayout& evidence) {
  if (options.pp == 0) return {};
  if (options.explicit_order() && stated.stages == 0) return words("layout.against.fewer");
  if (stated.stages > 0) return contradiction_of(trace, stated);
  if (evidence.stages > 0 && evidence.stages != options.pp)
    return words("layout.against.stages", Args().set("how", evidence.how).count("stages", evidence.stages));
  return {};
}

// Places the ranks by their numbers, in the order of dimensions that was found.
void place_ranks(const Trace& trace, RankMap& map) {
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    int64_t rest = trace.parts[p].rank;
    RankPlace& place = map.places[p];
    std::string_view order = map.order;
    while (!order.empty()) {
      const std::string_view word = order.substr(0, 2);
      order.remove_prefix(std::min<size_t>(order.size(), 3));
      if (word == "ep") continue;
      along(place, word) = static_cast<int32_t>(rest % along(map, word));
      rest /= along(map, word);
    }
    // Experts are spread over those ranks of a stage that hold the same tensor slice.
    if (place.ep == kUnknown && map.ep > 0) place.ep = (place.dp * map.cp + place.cp) % map.ep;
  }
}

}  // namespace

RankMap rank_map(const Trace& trace, const RankLayoutOptions& options) {
  RankMap map;
  map.places.resize(trace.parts.size());
  const std::optional<StatedSizes> sizes = stated_sizes(trace);
  if (sizes) {
    map.tp = sizes->tp, map.cp = sizes->cp, map.ep = sizes->ep, map.dp = sizes->dp, map.pp = sizes->pp;
    map.world = sizes->world;
    map.how = {"distributed_args", "distributed_args"};
  }
  bool by_groups = false;
  std::set<int32_t> named;
  for (size_t p = 0; p < trace.parts.size(); ++p)
    for (const RankGroup& group : groups_of_metadata(trace.parts[p])) {
      named.insert(group.ranks.begin(), group.ranks.end());
      const std::string_view dimension = dimension_of(group.purpose);
      const auto at = std::ranges::find(group.ranks, trace.parts[p].rank);
      if (dimension.empty() || at == group.ranks.end()) continue;
      along(map.places[p], dimension) = static_cast<int32_t>(at - group.ranks.begin());
      int32_t& size = along(map, dimension);
      size = std::max(size, static_cast<int32_t>(group.ranks.size()));
      by_groups = true;
    }
  if (by_groups) map.how = words(sizes ? "layout.groups.sizes" : "layout.groups");
  bool by_options = false;
  for (const auto& [own, stated] : {std::pair{&map.tp, options.tp},
                                    {&map.cp, options.cp},
                                    {&map.ep, options.ep},
                                    {&map.dp, options.dp},
                                    {&map.pp, options.pp}}) {
    if (*own != 0 || stated == 0) continue;
    *own = stated;
    if (!by_options) map.how = words("layout.and_options", Args().set("how", map.how));
    by_options = true;
  }
  if (map.pp > 0)
    for (int32_t* size : {&map.tp, &map.cp, &map.ep})
      if (*size == 0) *size = 1;
  int64_t ranks = named.empty() ? 0 : int64_t{*named.rbegin()} + 1;
  for (const Part& part : trace.parts) ranks = std::max<int64_t>(ranks, int64_t{part.rank} + 1);
  if (map.pp > 0 && map.dp == 0) {
    const int64_t model = int64_t{map.tp} * map.cp * map.pp;
    map.dp = static_cast<int32_t>(std::min<int64_t>((ranks + model - 1) / model, kMaxMissing * 1024));
  }
  if (map.world == 0) map.world = ranks;
  map.order = order_of(trace, map);
  if (!map.order.empty()) place_ranks(trace, map);
  std::set<int32_t> present = mapped<std::set>(trace.parts, &Part::rank);
  for (int32_t rank = 0; rank < map.world && map.missing.size() < kMaxMissing; ++rank)
    if (present.count(rank) == 0) map.missing.push_back(rank);
  return map;
}

int32_t context_parallel_of(const Trace& trace, const RankLayoutOptions& options) {
  int32_t stages = 0, pipelines = 0;
  for (const Part& part : trace.parts) {
    stages = std::max(stages, part.stage + 1);
    pipelines = std::max(pipelines, part.dp + 1);
  }
  if (pipelines < 2) return 1;
  const RankMap map = rank_map(trace, options);
  // Without an order some rank does not fit these sizes; and other stages than these sizes give were found against
  // them.
  if (map.cp < 2 || map.order.empty() || map.pp != stages || pipelines % map.cp != 0) return 1;
  return map.cp;
}

bool place_ranks(Trace& trace, const RankLayoutOptions& options) {
  const RankLayout stated = layout_from_options(trace, options), evidence = known_layout(trace, {});
  const Text against = contradiction(trace, options, stated, evidence);
  if (!against.empty())
    trace.diagnostics.add(problem::cells_layout_contradicted,
                          Args().flag("order", options.explicit_order()).set("against", against));
  const RankLayout& known = stated.stages > 0 && against.empty() ? stated : evidence;
  if (known.stages == 0) return false;
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    trace.parts[p].stage = known.stage[p];
    trace.parts[p].dp = known.dp[p];
  }
  trace.pipeline_stages = known.stages;
  trace.diagnostics.add(problem::cells_stages, Args().count("stages", known.stages).set("how", known.how));
  // Looks for pipelines of which some ranks are in the input and others are not.
  std::set<int32_t> present, missing;
  for (const Part& part : trace.parts) present.insert(part.rank);
  for (const Part& part : trace.parts)
    for (const RankGroup& group : groups_of_metadata(part))
      if (dimension_of(group.purpose) == "pp")
        for (const int32_t rank : group.ranks)
          if (present.count(rank) == 0) missing.insert(rank);
  if (!missing.empty()) {
    std::string list;
    size_t reported = 0;
    for (const int32_t rank : missing) {
      if (++reported > 8) break;
      append_item(list, std::to_string(rank));
    }
    trace.diagnostics.add(problem::cells_ranks_missing, Args().set("list", list).flag("more", missing.size() > 8), {},
                          missing.size());
  }
  return true;
}

}  // namespace stageline
