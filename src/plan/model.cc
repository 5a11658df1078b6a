#include "plan/model.h"

#include <algorithm>
#include <array>

#include "base/json_tree.h"
#include "base/text.h"

namespace stageline::plan {
namespace {

constexpr double kMaxSize = 1e9;
constexpr std::array<std::string_view, 9> kTypes = {"llama",   "mistral",     "qwen2",       "qwen3", "qwen3_moe",
                                                    "mixtral", "deepseek_v2", "deepseek_v3", "gpt2"};

std::string type_list() {
  std::string list;
  for (const std::string_view type : kTypes) append_item(list, type);
  return list;
}

// Reads sizes by name and keeps the first thing that is wrong.
class Sizes {
 public:
  explicit Sizes(Value object, std::string path = {}) : object_(object), path_(std::move(path)) {}

  // Returns the first of these keys (separated by |) that is there.
  Value find(std::string_view names) {
    Value found;
    for (const std::string_view name : split(names, '|')) {
      asked_.emplace_back(name);
      if (found.is_none()) found = object_[name];
    }
    return found;
  }
  bool has(std::string_view names) { return !find(names).is_none(); }
  // Returns what must be a list or an object where it is there.
  Value part(std::string_view name, ValueTag tag) {
    const Value value = find(name);
    if (!value.is_none() && value.tag() != tag)
      fail(std::string(name) + " is no " + (tag == ValueTag::kList ? "list" : "object"));
    return value.tag() == tag ? value : Value();
  }
  // Returns a size; `absent` where no key is there, and an error without `absent`.
  double size(std::string_view names, std::optional<double> absent = {}, int64_t min = 1, double max = kMaxSize) {
    const Value value = find(names);
    if (value.is_none()) {
      if (!absent) fail(std::string(split(names, '|').front()) + " is missing");
      return absent.value_or(1);
    }
    const std::optional<int64_t> number = value.tag() == ValueTag::kText ? std::nullopt : value.integer();
    if (!number || *number < min || static_cast<double>(*number) > max) {
      fail(std::string(split(names, '|').front()) + " is not a whole number from " + std::to_string(min) + " to " +
           std::to_string(std::llround(max)));
      return 1;
    }
    return static_cast<double>(*number);
  }
  double amount(std::string_view name) {
    const Value value = find(name);
    const std::optional<double> number = value.tag() == ValueTag::kText ? std::nullopt : value.real();
    if (number && *number >= 0 && *number <= 1e18) return *number;
    fail(std::string(name) + " of a layer is not a number from 0 to 1e18");
    return 0;
  }
  bool truth(std::string_view name, bool absent) {
    const Value value = find(name);
    if (const auto is = value.boolean()) return *is;
    const auto number = value.tag() == ValueTag::kText ? std::nullopt : value.integer();
    if (!value.is_none() && number != 0 && number != 1) fail(std::string(name) + " is neither true nor false");
    return number ? *number != 0 : absent;
  }
  // Refuses keys that nothing asked for: all of them, or, in a config that has many keys of no effect, those that look
  // like a misspelt one.
  void check_keys(bool all) {
    for (size_t i = 0; i < object_.size(); ++i) {
      const std::string key(object_.key(i).text());
      if (std::ranges::count(asked_, key)) continue;
      const std::string near = nearest(key, asked_);
      if (all || (key.size() >= 6 && !near.empty() && object_[near].is_none()))
        fail("the key \"" + valid_utf8(key) + "\" is not known" + (near.empty() ? "" : "; did you mean " + near + "?"));
    }
  }
  // Takes over what is wrong in a part.
  void add(Sizes& part) {
    part.check_keys(true);
    if (!part.wrong_.empty()) fail(part.wrong_);
  }
  void fail(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  Status status() const {
    if (wrong_.empty()) return {};
    return make_error(ErrorCode::kBadInput, wrong_, "stageline help plan names the keys that a description needs",
                      {path_});
  }

 private:
  Value object_;
  std::string path_, wrong_;
  std::vector<std::string> asked_;
};

void add_kinds(Model& m, int64_t layers, const std::vector<uint8_t>& is_moe) {
  const bool any = std::ranges::any_of(is_moe, [](uint8_t x) { return x != 0; });
  const bool all = std::ranges::all_of(is_moe, [](uint8_t x) { return x != 0; });
  if (!any || !all) m.kinds.push_back({.name = "dense"});
  if (any) m.kinds.push_back({.name = "moe", .moe = true});
  for (int64_t i = 0; i < layers; ++i)
    m.kind_of.push_back(static_cast<uint8_t>(is_moe[i] && m.kinds.size() > 1 ? 1 : 0));
}

void read_experts(Sizes& s, Model& m, std::string_view type) {
  Experts e{.count = s.size("num_local_experts|n_routed_experts|num_experts")};
  e.top_k = s.size("num_experts_per_tok|moe_router_topk", {}, 1, e.count);
  e.ffn = s.size("moe_intermediate_size|moe_ffn_hidden_size", m.ffn);
  e.shared = e.ffn * s.size("n_shared_experts", 0, 0, 10'000);
  e.router_bias = type == "deepseek_v3";
  m.moe = e;
}

// Reads Megatron's terms. A layer pattern is a frequency or a list of 0 and 1.
void read_megatron(Sizes& s, Model& m) {
  m.type = "megatron";
  m.hidden = s.size("hidden_size");
  m.heads = s.size("num_attention_heads", {}, 1, m.hidden);
  m.kv_heads = s.size("kv|num_query_groups", m.heads, 1, m.heads);
  m.head_dim = s.size("kv_channels", m.hidden / m.heads);
  m.ffn = s.size("ffn_hidden_size");
  m.vocab = s.size("vocab|vocab_size|padded_vocab_size");
  m.gated = s.truth("swiglu", false);
  m.norm_parts = s.find("normalization").text() == "RMSNorm" ? 1 : 2;
  m.bias = m.qkv_bias = m.norm_parts == 2 && !m.gated;
  m.tied = !s.truth("untie", s.truth("untie_embeddings_and_output_weights", false));
  m.mtp = s.size("mtp|mtp_num_layers", 0, 0, 64);
  const auto layers = static_cast<int64_t>(s.size("num_layers", {}, 1, kMaxModelLayers));
  std::vector<uint8_t> is_moe(layers, 0);
  s.find("seq|sequence_length|model");
  if (const Value from = s.part("moe", ValueTag::kDict); from.is_dict()) {
    Sizes own(from);
    Experts e{.count = own.size("num_experts")};
    e.top_k = own.size("moe_router_topk", 2, 1, e.count);
    e.ffn = own.size("moe_ffn_hidden_size", m.ffn);
    e.shared = own.size("shared|moe_shared_expert_intermediate_size", 0, 0);
    m.moe = e;
    const Value every = own.find("moe_layer_freq");
    if (every.is_list() && every.size() != static_cast<size_t>(layers))
      own.fail("moe_layer_freq has " + std::to_string(every.size()) + " layers, not " + std::to_string(layers));
    const auto step = every.is_list() ? 1 : static_cast<int64_t>(own.size("moe_layer_freq", 1, 1, kMaxModelLayers));
    for (int64_t i = 0; i < layers; ++i)
      is_moe[i] = every.is_list() ? every.item(static_cast<size_t>(i)).integer().value_or(0) != 0 : i % step == 0;
    s.add(own);
  }
  if (const Value from = s.part("mla", ValueTag::kDict); from.is_dict()) {
    Sizes own(from);
    m.mla = LatentAttention{own.size("q_lora_rank", 0, 0), own.size("kv_lora_rank"), own.size("qk_head_dim"),
                            own.size("qk_pos_emb_head_dim"), own.size("v_head_dim")};
    s.add(own);
  }
  add_kinds(m, layers, is_moe);
}

void read_huggingface(Sizes& s, Model& m, Value object, const std::string& type) {
  m.type = type;
  const bool gpt2 = type == "gpt2";
  m.hidden = s.size("hidden_size|n_embd");
  m.heads = s.size("num_attention_heads|n_head", {}, 1, m.hidden);
  m.kv_heads = gpt2 ? m.heads : s.size("num_key_value_heads", m.heads, 1, m.heads);
  m.head_dim = s.size("head_dim", std::max(1.0, std::floor(m.hidden / m.heads)));
  m.ffn = s.size("intermediate_size|n_inner", gpt2 ? std::optional(4 * m.hidden) : std::nullopt);
  m.vocab = s.size("vocab_size");
  m.tied = s.truth("tie_word_embeddings", gpt2);
  m.gated = !gpt2;
  m.norm_parts = gpt2 ? 2 : 1;
  m.bias = gpt2;
  m.qkv_bias = gpt2 || s.truth("attention_bias", type == "qwen2");
  m.qk_norm = type.starts_with("qwen3");
  m.positions = gpt2 ? s.size("n_positions") : 0;
  m.mtp = s.size("num_nextn_predict_layers", 0, 0, 64);
  const auto layers = static_cast<int64_t>(s.size("num_hidden_layers|n_layer", {}, 1, kMaxModelLayers));
  std::vector<uint8_t> is_moe(layers, 0);
  if (s.has("num_local_experts|n_routed_experts|num_experts")) {
    read_experts(s, m, type);
    const auto first = static_cast<int64_t>(s.size("first_k_dense_replace", 0, 0, kMaxModelLayers));
    const auto every = static_cast<int64_t>(s.size("moe_layer_freq|decoder_sparse_step", 1, 1, kMaxModelLayers));
    for (int64_t i = 0; i < layers; ++i) is_moe[i] = i >= first && i % every == 0;
  }
  if (s.has("kv_lora_rank"))
    m.mla = LatentAttention{s.size("q_lora_rank", 0, 0), s.size("kv_lora_rank"), s.size("qk_nope_head_dim"),
                            s.size("qk_rope_head_dim"), s.size("v_head_dim")};
  add_kinds(m, layers, is_moe);
  s.find(
      "q_lora_rank|qk_nope_head_dim|qk_rope_head_dim|qk_head_dim|v_head_dim|num_experts_per_tok|moe_intermediate_size");
  for (const char* key : {"moe", "mla"})
    if (s.has(key)) s.fail(std::string(key) + " belongs to a description in Megatron's terms");
  for (const char* key : {"rope_scaling", "vision_config"})
    if (!object[key].is_none()) m.notes.emplace_back(key);
  if (!object["sliding_window"].is_none() && s.truth("use_sliding_window", true))
    m.notes.emplace_back("sliding_window");
}

// Replaces the layers by those of "layers": [{"kind", "count", "params", "act_bytes_per_token", "flops_per_token"}].
void read_layer_list(Sizes& s, Model& m, Value list) {
  m.kind_of.clear();
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list.item(i).is_dict()) return s.fail("layers has an entry that is no object");
    Sizes own(list.item(i));
    const std::string name = valid_utf8(own.find("kind").text());
    const auto count = static_cast<int64_t>(own.size("count", 1, 1, kMaxModelLayers));
    auto known = std::ranges::find(m.kinds, name, &LayerKind::name);
    if (known == m.kinds.end()) {
      LayerKind kind{.name = name, .custom = true};
      kind.parameters = own.amount("params");
      kind.act_bytes_per_token = own.amount("act_bytes_per_token");
      kind.flops_per_token = own.amount("flops_per_token");
      if (name.empty()) own.fail("a layer has no kind");
      if (m.kinds.size() == kMaxKinds) own.fail("layers have more than " + std::to_string(kMaxKinds) + " kinds");
      m.kinds.push_back(std::move(kind));
      known = m.kinds.end() - 1;
    } else if (known->custom) {
      own.find("params|act_bytes_per_token|flops_per_token");
    }
    s.add(own);
    if (m.layers() + count > kMaxModelLayers || m.kinds.size() > kMaxKinds)
      return s.fail("layers has more than " + std::to_string(kMaxModelLayers) + " layers or too many kinds");
    m.kind_of.insert(m.kind_of.end(), static_cast<size_t>(count), static_cast<uint8_t>(known - m.kinds.begin()));
  }
  if (m.kind_of.empty()) s.fail("layers is empty");
}

}  // namespace

Result<Model> read_model(std::string_view json, const std::string& path) {
  TRY(tree, parse_whole_json(json, path));
  Value root = tree->root();
  if (!root.is_dict())
    return make_error(ErrorCode::kBadInput, "this is no JSON object", "give the config.json of a model", {path});
  const std::string outer = valid_utf8(root["model_type"].text());
  const bool nested = root["text_config"].is_dict() && root["hidden_size"].is_none();
  if (nested) root = root["text_config"];
  std::string type = valid_utf8(root["model_type"].text());
  if (nested && type.ends_with("_text")) type.resize(type.size() - 5);
  Model m;
  Sizes s(root, path);
  if (!root["ffn_hidden_size"].is_none() && type.empty()) {
    read_megatron(s, m);
  } else {
    if (type.empty()) type = "llama";
    if (!std::ranges::count(kTypes, type))
      return make_error(ErrorCode::kBadInput, "the model_type \"" + type + "\" is not known", "known: " + type_list(),
                        {path});
    read_huggingface(s, m, root, type);
  }
  if (nested && !outer.empty()) m.notes.emplace_back(outer + ": all but text_config");
  if (const Value list = s.part("layers", ValueTag::kList); list.is_list()) read_layer_list(s, m, list);
  s.check_keys(false);
  TRY_OK(s.status());
  return m;
}

LayerParameters layer_parameters(const Model& m, const LayerKind& kind) {
  LayerParameters out;
  if (kind.custom) {
    out.mlp = kind.parameters;
    return out;
  }
  const double h = m.hidden, a = m.heads, q = m.kv_heads, d = m.head_dim, f = m.ffn;
  if (m.mla) {
    const LatentAttention& x = *m.mla;
    const double wide = x.key(), qr = x.q_rank, kr = x.kv_rank, v = x.value;
    out.attention =
        (x.q_rank > 0 ? qr * (h + a * wide) : h * a * wide) + h * (kr + x.rope) + kr * a * (x.nope + v) + a * v * h;
    out.small = qr + kr;
  } else {
    out.attention = h * d * (2 * a + 2 * q);
    out.small = (m.qk_norm ? 2 * d : 0) + (m.qkv_bias ? d * (a + 2 * q) : 0) + (m.bias ? h : 0);
  }
  out.small += 2 * h * m.norm_parts;
  const double w = m.mlp_weights();
  if (kind.moe) {
    const double n = m.moe->count;
    out.mlp = w * h * m.moe->shared;
    out.small += h * n + (m.moe->router_bias ? n : 0);
    out.experts = w * h * m.moe->ffn * n;
  } else {
    out.mlp = w * h * f;
    out.small += m.bias ? f + h : 0;
  }
  return out;
}

double mtp_parameters(const Model& m) {
  const double h = m.hidden;
  return layer_parameters(m, m.kinds[m.kind_of.back()]).sum() + 2 * h * h + 3 * h;
}

double total_parameters(const Model& m) {
  const double h = m.hidden;
  double sum = m.vocab * h * (m.tied ? 1 : 2) + m.norm_parts * h + m.positions * h;
  std::vector<double> of_kind;
  for (const LayerKind& kind : m.kinds) of_kind.push_back(layer_parameters(m, kind).sum());
  for (const uint8_t kind : m.kind_of) sum += of_kind[kind];
  return sum;
}

double layer_flops(const Model& m, const LayerKind& kind, double sequence) {
  if (kind.custom) return kind.flops_per_token;
  const double h = m.hidden, a = m.heads;
  double linear = 0, core = m.head_dim * a;
  if (m.mla) {
    const LatentAttention& x = *m.mla;
    const double wide = x.key(), qr = x.q_rank, kr = x.kv_rank, v = x.value;
    linear = (x.q_rank > 0 ? qr * (h + a * wide + 1) : h * a * wide) + kr * (h + a * (x.nope + v) + 1) + h * x.rope +
             a * v * h;
    core = a * (wide + v) / 2;
  } else {
    linear = h * m.head_dim * (2 * a + 2 * m.kv_heads);
  }
  const double width = kind.moe ? m.moe->ffn * m.moe->top_k + m.moe->shared : m.ffn;
  return 6 * (linear + core * sequence + m.mlp_weights() * h * width);
}

double head_flops(const Model& m, double sequence) {
  const double h = m.hidden, n = m.mtp;
  return 6 * (n * (3 * h + 2 * h * h) + h * m.vocab * (n + 1)) +
         n * layer_flops(m, m.kinds[m.kind_of.back()], sequence);
}

double total_flops(const Model& m, double sequence) {
  double sum = head_flops(m, sequence);
  for (const uint8_t kind : m.kind_of) sum += layer_flops(m, m.kinds[kind], sequence);
  return sum;
}

}  // namespace stageline::plan
