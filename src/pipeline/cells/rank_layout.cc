#include "pipeline/cells/rank_layout.h"

#include "base/json_members.h"
#include "model/source_limits.h"
#include "model/torch_facts.h"

namespace stageline {
namespace {

constexpr const char* kDefaultOrder = "tp-cp-ep-dp-pp";
constexpr size_t kMaxGroups = size_t{1} << 16;
constexpr size_t kMaxGroupRanks = size_t{1} << 20;

RankLayout empty_layout(const Trace& trace, Text how = {}) {
  RankLayout out;
  out.stage.assign(trace.parts.size(), kUnknown);
  out.dp.assign(trace.parts.size(), kUnknown);
  out.how = std::move(how);
  return out;
}

enum class GroupKind : uint8_t { kOther, kPipeline, kTensor, kData, kExpert };

// Returns the kind of a group by the words of its description: "mesh_pp", "pp", "PIPELINE_MODEL_PARALLEL_GROUP". Groups
// over several dimensions ("EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP", "mesh_dp_cp") have none of these kinds.
GroupKind group_kind(std::string_view description) {
  std::set<std::string, std::less<>> words;
  std::string word;
  for (const char c : description) {
    const char low = to_lower(c);
    if ((low >= 'a' && low <= 'z') || (low >= '0' && low <= '9')) word += low;
    else words.insert(std::exchange(word, {}));
  }
  words.insert(word);
  const auto has = [&](std::string_view w) { return words.find(w) != words.end(); };
  if (has("embedding") || has("cp") || has("context")) return GroupKind::kOther;
  const bool pipeline = has("pp") || has("pipeline"), tensor = has("tp") || has("tensor"),
             data = has("dp") || has("data") || has("fsdp"), expert = has("expert") || has("ep") || has("exp");
  if (pipeline + tensor + data + expert != 1) return GroupKind::kOther;
  return pipeline ? GroupKind::kPipeline : tensor ? GroupKind::kTensor : data ? GroupKind::kData : GroupKind::kExpert;
}

// Parses "[0, 1, 2]"; returns an empty list when the text was cut (", ...") or is not a list of ranks.
std::vector<int32_t> rank_list(std::string_view text) {
  std::vector<int32_t> ranks;
  for (const JsonMember& item : json_members(text, kMaxGroupRanks)) {
    const auto rank = item.whole ? json_integer(item.value) : std::nullopt;
    if (!rank || *rank < 0 || *rank > kMaxRankNumber) return {};
    ranks.push_back(static_cast<int32_t>(*rank));
  }
  return ranks;
}

// The groups of one part that hold its rank, by kind; of several of a kind the first with more than one member.
class OwnGroups {
 public:
  explicit OwnGroups(const Part& part) : part_(part) {
    for (const RankGroup& group : groups_of_metadata(part)) take(group.purpose, group.ranks);
  }
  std::vector<int32_t> pipeline, tensor, expert;

  // Collectives name their groups too, in lists that Kineto cuts after 30 ranks.
  void ask_collectives(const StringPool& names) {
    std::set<std::pair<StringId, StringId>> seen;
    for (const CollectiveFact& fact : part_.collectives)
      if (fact.group_description != 0 && fact.group_ranks != 0 &&
          seen.emplace(fact.group_description, fact.group_ranks).second)
        take(names.text(fact.group_description), rank_list(names.text(fact.group_ranks)));
  }

 private:
  void take(std::string_view description, std::vector<int32_t> ranks) {
    const GroupKind kind = group_kind(description);
    std::vector<int32_t>* own = kind == GroupKind::kPipeline ? &pipeline
                                : kind == GroupKind::kTensor ? &tensor
                                : kind == GroupKind::kExpert ? &expert
                                                             : nullptr;
    if (own && own->size() <= 1 && std::ranges::find(ranks, part_.rank) != ranks.end()) *own = std::move(ranks);
  }
  const Part& part_;
};

std::optional<int32_t> position_in(const std::vector<int32_t>& ranks, int32_t rank) {
  const auto at = std::ranges::find(ranks, rank);
  if (at == ranks.end()) return std::nullopt;
  return static_cast<int32_t>(at - ranks.begin());
}

class RankGroups {  // sets of ranks that are connected, by rank number
 public:
  int32_t root(int32_t rank) {
    auto at = parent_.try_emplace(rank, rank).first;
    while (at->second != at->first) {
      at->second = parent_[at->second];
      at = parent_.find(at->second);
    }
    return at->first;
  }
  void join(int32_t a, int32_t b) {
    const int32_t x = root(a), y = root(b);
    parent_[std::max(x, y)] = std::min(x, y);
  }
  std::map<int32_t, std::vector<int32_t>> members() {  // key: the smallest rank of the set; members ascend
    std::map<int32_t, std::vector<int32_t>> out;
    for (const auto& [rank, unused] : parent_) out[root(rank)].push_back(rank);
    return out;
  }

 private:
  std::map<int32_t, int32_t> parent_;
};

// Returns pairs of ranks, the smaller first, of which one sends to the other.
std::set<std::pair<int32_t, int32_t>> message_edges(const Trace& trace) {
  std::set<std::pair<int32_t, int32_t>> edges;
  for (const Part& part : trace.parts)
    for (const CollectiveFact& fact : part.collectives) {
      const std::string_view name = trace.names.text(fact.name);
      if (name != "send" && name != "recv" && name != "receive") continue;
      const int64_t other = name == "send" ? fact.dst_rank : fact.src_rank;
      if (other < 0 || other > kMaxRankNumber || other == part.rank) continue;
      const auto to = static_cast<int32_t>(other);
      edges.emplace(std::min(part.rank, to), std::max(part.rank, to));
    }
  return edges;
}

}  // namespace

Status check_rank_order(std::string_view order) {
  const std::vector<std::string_view> known = {"tp", "cp", "ep", "dp", "pp"};
  std::set<std::string_view> seen;
  for (const std::string_view word : split(order, '-'))
    if (std::ranges::find(known, word) == known.end() || !seen.insert(word).second)
      return make_error(ErrorCode::kUsage, "\"" + std::string(order) + "\" is no order of ranks",
                        "name each of tp, cp, ep, dp and pp at most once, the fastest first: tp-cp-ep-dp-pp");
  return {};
}

Status check_rank_layout(const RankLayoutOptions& options) {
  const std::string& order = options.order;
  if (order.empty()) return {};
  TRY_OK(check_rank_order(order));
  std::set<std::string_view> seen;
  for (const std::string_view word : split(order, '-')) seen.insert(word);
  for (const auto& [word, size] :
       {std::pair{"tp", options.tp}, {"dp", options.dp}, {"pp", options.pp}, {"cp", options.cp}, {"ep", options.ep}})
    if (size > 1 && seen.find(word) == seen.end())
      return make_error(
          ErrorCode::kUsage,
          "the order \"" + order + "\" leaves out " + word + ", and --" + word + " says " + std::to_string(size),
          "name it in the order, the fastest first: tp-dp-pp; what an order leaves out counts as 1");
  return {};
}

RankLayout layout_from_options(const Trace& trace, const RankLayoutOptions& options) {
  RankLayout out = empty_layout(trace, words(!options.order.empty() ? "layout.order"
                                             : options.cp > 0       ? "layout.options.context"
                                                                    : "layout.options"));
  if (!options.explicit_order() || trace.parts.empty()) return out;
  const int64_t tp = std::max(options.tp, 1), cp = std::max(options.cp, 1), pp = options.pp;
  int64_t ranks = static_cast<int64_t>(trace.parts.back().rank) + 1;
  for (const Part& part : trace.parts) ranks = std::max<int64_t>(ranks, int64_t{part.rank} + 1);
  const std::string order = options.order.empty() ? kDefaultOrder : options.order;
  const bool replicas = order.find("dp") != std::string::npos;
  const int64_t dp = !replicas        ? 1
                     : options.dp > 0 ? options.dp
                                      : std::max<int64_t>((ranks + tp * cp * pp - 1) / (tp * cp * pp), 1);
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    int64_t rest = trace.parts[p].rank;
    int32_t context = 0;
    for (const std::string_view word : split(order, '-')) {
      const int64_t size = word == "tp" ? tp : word == "cp" ? cp : word == "dp" ? dp : word == "pp" ? pp : 1;
      const auto at = static_cast<int32_t>(rest % size);
      rest /= size;
      if (word == "pp") out.stage[p] = at;
      if (word == "dp") out.dp[p] = at;
      if (word == "cp") context = at;
    }
    if (cp > 1) out.dp[p] = std::max(out.dp[p], 0) * static_cast<int32_t>(cp) + context;
    // There are more ranks than the sizes make, so the sizes are not this job's.
    if (rest > 0) return empty_layout(trace);
  }
  out.stages = options.pp;
  return out;
}

std::vector<RankGroup> groups_of_metadata(const Part& part) {
  std::vector<RankGroup> out;
  for (const JsonMember& group : json_members(json_member(meta_json(part, "distributedInfo"), "pg_config"), kMaxGroups))
    out.push_back({json_text(json_member(group.value, "pg_desc")), rank_list(json_member(group.value, "ranks"))});
  for (const JsonMember& group : json_members(meta_json(part, "parallel_group_info"), kMaxGroups))
    out.push_back(
        {json_text(json_member(group.value, "group_name")), rank_list(json_member(group.value, "global_ranks"))});
  return out;
}

std::vector<int32_t> expert_ranks(const StringPool& names, const Part& part) {
  OwnGroups groups(part);
  if (groups.expert.empty()) groups.ask_collectives(names);
  return groups.expert;
}

std::optional<StatedSizes> stated_sizes(const Trace& trace) {
  for (const Part& part : trace.parts) {
    const std::string_view args = meta_json(part, "distributed_args");
    if (args.empty()) continue;
    StatedSizes out;
    const auto take = [&](const char* name, int32_t& size) {
      const auto value = json_integer(json_member(args, name));
      if (value && *value >= 1 && *value <= kMaxStageNumber) size = static_cast<int32_t>(*value);
      return value.has_value();
    };
    if (!take("pipeline_model_parallel_size", out.pp)) continue;
    take("tensor_model_parallel_size", out.tp);
    take("context_parallel_size", out.cp);
    take("expert_model_parallel_size", out.ep);
    const bool stated_dp = take("data_parallel_size", out.dp);
    out.world = json_integer(json_member(args, "world_size")).value_or(0);
    const int64_t model = int64_t{out.tp} * out.cp * out.pp;
    if (!stated_dp && out.world > 0 && out.world % model == 0 && out.world / model <= kMaxRankNumber)
      out.dp = static_cast<int32_t>(out.world / model);
    // Some jobs state a data-parallel size that includes the context-parallel ranks.
    if (out.world > 0 && model * out.dp != out.world && out.dp % out.cp == 0) out.dp /= out.cp;
    if (out.world > 0 && model * out.dp != out.world) return std::nullopt;
    out.world = model * out.dp;
    return out;
  }
  return std::nullopt;
}

RankLayout layout_from_sizes(const Trace& trace) {
  const std::optional<StatedSizes> sizes = stated_sizes(trace);
  if (!sizes) return empty_layout(trace);
  RankLayoutOptions options{sizes->pp, sizes->tp, sizes->dp, {}, sizes->cp, sizes->ep};
  RankLayout out = layout_from_options(trace, options);
  out.how = {"distributed_args", "distributed_args"};
  return out;
}

RankLayout layout_from_groups(const Trace& trace) {
  RankLayout out = empty_layout(trace, words("layout.groups"));
  std::vector<OwnGroups> own;
  std::unordered_map<int32_t, size_t> reported_by;  // rank → a part whose pipeline contains it
  for (const Part& part : trace.parts) {
    own.emplace_back(part);
    if (own.back().pipeline.empty()) own.back().ask_collectives(trace.names);
    for (const int32_t rank : own.back().pipeline) reported_by.emplace(rank, own.size() - 1);
  }
  for (size_t p = 0; p < own.size(); ++p)
    if (const auto reported = reported_by.find(trace.parts[p].rank);
        own[p].pipeline.empty() && reported != reported_by.end())
      own[p].pipeline = own[reported->second].pipeline;
  const std::optional<StatedSizes> sizes = stated_sizes(trace);
  size_t stages = 0;
  for (const OwnGroups& groups : own) {
    if (groups.pipeline.size() < 2 || (stages > 0 && stages != groups.pipeline.size())) return empty_layout(trace);
    stages = groups.pipeline.size();
  }
  if (stages == 0) return empty_layout(trace);
  // Pipelines side by side are replicas, but those of one tensor-parallel group are one replica.
  std::map<int32_t, std::set<int32_t>> pipelines;  // tensor-parallel index → first ranks of its pipelines
  std::vector<int32_t> tensor(own.size());
  for (size_t p = 0; p < own.size(); ++p) {
    // In every order that is in use, tensor-parallel ranks follow each other.
    const int32_t by_number = sizes ? trace.parts[p].rank % sizes->tp : 0;
    tensor[p] = position_in(own[p].tensor, trace.parts[p].rank).value_or(by_number);
    out.stage[p] = *position_in(own[p].pipeline, trace.parts[p].rank);
    pipelines[tensor[p]].insert(own[p].pipeline[0]);
  }
  for (size_t p = 0; p < own.size(); ++p) {
    const std::set<int32_t>& firsts = pipelines[tensor[p]];
    out.dp[p] = static_cast<int32_t>(std::distance(firsts.begin(), firsts.find(own[p].pipeline[0])));
  }
  out.stages = static_cast<int32_t>(stages);
  return out;
}

RankLayout layout_from_messages(const Trace& trace) {
  const std::set<std::pair<int32_t, int32_t>> edges = message_edges(trace);
  RankGroups groups;
  for (const auto& [a, b] : edges) groups.join(a, b);
  std::set<int32_t> present = mapped<std::set>(trace.parts, &Part::rank);
  if (edges.empty()) return empty_layout(trace);
  const auto members = groups.members();
  const size_t stages = members.begin()->second.size();
  std::map<int32_t, std::pair<int32_t, int32_t>> place;  // rank → stage, dp
  int32_t dp = 0;
  for (const auto& [first, ranks] : members) {
    if (ranks.size() != stages) return empty_layout(trace);
    for (uint32_t i = 0; i < ranks.size(); ++i) place[ranks[i]] = {static_cast<int32_t>(i), dp};
    ++dp;
  }
  const auto last = static_cast<int32_t>(stages) - 1;
  for (const auto& [a, b] : edges) {
    const int32_t apart = std::abs(place[a].first - place[b].first);
    if (apart != 1 && apart != last) return empty_layout(trace);
  }
  RankLayout out = empty_layout(trace, words("layout.messages"));
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    const auto at = place.find(trace.parts[p].rank);
    if (at == place.end()) return empty_layout(trace);
    out.stage[p] = at->second.first;
    out.dp[p] = at->second.second;
  }
  for (const auto& [rank, unused] : place)  // a rank that is not in the input may have further neighbours
    if (present.count(rank) == 0) return empty_layout(trace);
  out.stages = static_cast<int32_t>(stages);
  return out;
}

Text contradiction_of(const Trace& trace, const RankLayout& stated) {
  RankLayout groups = layout_from_groups(trace);
  if (groups.stages == 0) groups = layout_from_sizes(trace);
  for (size_t p = 0; groups.stages > 0 && p < trace.parts.size(); ++p)
    if (groups.stages != stated.stages || groups.stage[p] != stated.stage[p])
      return words("layout.against.groups", Args()
                                                .set("how", groups.how)
                                                .count("stages", groups.stages)
                                                .set("rank", int64_t{trace.parts[p].rank})
                                                .set("stage", int64_t{groups.stage[p]}));
  std::map<int32_t, size_t> part_of;
  for (size_t p = 0; p < trace.parts.size(); ++p) part_of.emplace(trace.parts[p].rank, p);
  for (const auto& [a, b] : message_edges(trace)) {
    const auto x = part_of.find(a), y = part_of.find(b);
    if (x == part_of.end() || y == part_of.end()) continue;
    const int32_t apart = std::abs(stated.stage[x->second] - stated.stage[y->second]);
    if (stated.dp[x->second] != stated.dp[y->second] || (apart != 1 && apart != stated.stages - 1))
      return words("layout.against.messages", Args().set("a", int64_t{a}).set("b", int64_t{b}));
  }
  return {};
}

RankLayout known_layout(const Trace& trace, const RankLayoutOptions& options) {
  RankLayout out = layout_from_options(trace, options);
  if (out.stages > 0 && !contradiction_of(trace, out).empty()) out = empty_layout(trace);
  const auto fits = [&] { return out.stages > 0 && (options.pp == 0 || out.stages == options.pp); };
  if (out.stages == 0) out = layout_from_groups(trace);
  if (!fits()) out = layout_from_sizes(trace);
  if (!fits()) out = layout_from_messages(trace);
  return fits() ? out : empty_layout(trace);
}

}  // namespace stageline
