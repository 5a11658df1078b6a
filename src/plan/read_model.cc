// Reads descriptions of models: config.json of HuggingFace, Megatron's terms, and lists of layers.
#include "base/json_tree.h"
#include "plan/model.h"

namespace stageline::plan {
namespace {

constexpr double kMaxSize = 1e9;
constexpr std::array<std::string_view, 9> kTypes = {"llama",   "mistral",     "qwen2",       "qwen3", "qwen3_moe",
                                                    "mixtral", "deepseek_v2", "deepseek_v3", "gpt2"};

// Further ones of which FLOPs are known, but not what they keep in memory.
constexpr std::array<std::string_view, 10> kCountedTypes = {
    "gpt3", "palm", "mpt", "gpt_oss", "gemma3", "kimi_k2", "glm4_moe", "qwen3_next", "qwen2_moe", "nemotron_h"};

bool is_known(std::string_view type, ModelUse use) {
  return std::ranges::count(kTypes, type) > 0 ||
         (use == ModelUse::kFlops && std::ranges::count(kCountedTypes, type) > 0);
}

std::string type_list(ModelUse use) {
  std::string list;
  for (const std::string_view type : kTypes) append_item(list, type);
  if (use == ModelUse::kFlops)
    for (const std::string_view type : kCountedTypes) append_item(list, type);
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

struct LayerForm {
  Mixer mixer = Mixer::kAttention;
  bool moe = false, mlp = true;
  auto operator<=>(const LayerForm&) const = default;

  std::string name() const {
    constexpr std::array<std::string_view, 5> kNames = {"", "window", "delta", "mamba", ""};
    std::string out(kNames[static_cast<size_t>(mixer)]);
    if (mlp) out += std::string(out.empty() ? "" : " ") + (moe ? "moe" : "dense");
    if (!out.empty()) return out;
    return mixer == Mixer::kNone ? "nothing" : "attention";
  }
};

// Fills the kinds, and which each layer and each layer of multi-token prediction is.
void add_kinds(Model& m, const std::vector<LayerForm>& layers, const std::vector<LayerForm>& mtp) {
  std::set<LayerForm> forms(layers.begin(), layers.end());
  forms.insert(mtp.begin(), mtp.end());
  for (const LayerForm& form : forms)
    m.kinds.push_back({.name = form.name(), .moe = form.moe, .mixer = form.mixer, .mlp = form.mlp});
  const auto kind = [&](const LayerForm& form) {
    return static_cast<uint8_t>(std::distance(forms.begin(), forms.find(form)));
  };
  for (const LayerForm& form : layers) m.kind_of.push_back(kind(form));
  for (const LayerForm& form : mtp) m.mtp_kind_of.push_back(kind(form));
}

// Reads which layers have experts: a list of 0 and 1, or "every n-th".
void read_sparse_layers(Sizes& s, std::string_view key, std::vector<LayerForm>& layers) {
  const Value every = s.find(key);
  if (every.is_list() && every.size() != layers.size())
    return s.fail(std::string(key) + " has " + std::to_string(every.size()) + " layers, not " +
                  std::to_string(layers.size()));
  const auto step = every.is_list() ? 1 : static_cast<size_t>(s.size(key, 1, 1, kMaxModelLayers));
  for (size_t i = 0; i < layers.size(); ++i)
    layers[i].moe = every.is_list() ? every.item(i).integer().value_or(0) != 0 : i % step == 0;
}

DeltaNet read_delta(Sizes& s) {
  return {s.size("linear_key_head_dim", 128), s.size("linear_value_head_dim", 128), s.size("linear_num_key_heads", 16),
          s.size("linear_num_value_heads", 32), s.size("linear_conv_kernel_dim", 4)};
}

Mamba read_mamba(Sizes& s, double hidden) {
  Mamba out{s.size("mamba_state_dim|ssm_state_size", 128), s.size("mamba_head_dim", 64),
            s.size("mamba_num_groups|n_groups", 8), s.size("conv_kernel", 4)};
  const double heads = s.size("mamba_num_heads", 0, 0);
  out.heads = heads > 0 ? heads : std::floor(2 * hidden / out.head_dim);
  out.inner = heads > 0 ? heads * out.head_dim : 2 * hidden;
  return out;
}

// A letter for each layer: M Mamba, G gated delta net, * attention, - MLP, E experts; | and / divide stages.
std::vector<LayerForm> read_pattern(Sizes& s, Model& m, std::string_view pattern) {
  std::vector<LayerForm> layers;
  std::set<char> unknown;
  m.hybrid = true;
  for (const char letter : pattern) {
    if (letter == '|' || letter == '/') continue;
    if (letter == 'M') layers.push_back({Mixer::kMamba, false, false});
    else if (letter == 'G') layers.push_back({Mixer::kDelta, false, false});
    else if (letter == '*') layers.push_back({Mixer::kAttention, false, false});
    else if (letter == '-') layers.push_back({Mixer::kNone, false, true});
    else if (letter == 'E') layers.push_back({Mixer::kNone, true, true});
    else if (layers.push_back({Mixer::kNone, false, false}); unknown.insert(letter).second)
      m.notes.push_back("layers " + valid_utf8(std::string(1, letter)));
  }
  if (layers.empty()) s.fail("the pattern of layers is empty");
  if (pattern.find('E') != pattern.npos && !m.moe)
    s.fail("the pattern has layers of experts, but num_experts is missing");
  if (pattern.size() > kMaxModelLayers)
    s.fail("the pattern has more than " + std::to_string(kMaxModelLayers) + " layers");
  m.mamba = read_mamba(s, m.hidden);
  if (pattern.find('G') != pattern.npos) m.delta = read_delta(s);
  return layers;
}

// Reads the sizes of experts in Megatron's terms.
Experts read_megatron_experts(Sizes& s, double ffn) {
  Experts e{.count = s.size("num_experts")};
  e.top_k = s.size("moe_router_topk", 2, 1, e.count);
  e.ffn = s.size("moe_ffn_hidden_size", ffn);
  e.shared = s.size("shared|moe_shared_expert_intermediate_size", 0, 0);
  e.latent = s.size("moe_latent_size", 0, 0);
  return e;
}

// Reads Megatron's terms: its arguments, or the same with "moe" and "mla" as objects. A layer pattern is a frequency or
// a list of 0 and 1.
void read_megatron(Sizes& s, Model& m) {
  m.type = "megatron";
  m.hidden = s.size("hidden_size");
  m.heads = s.size("num_attention_heads", {}, 1, m.hidden);
  const bool grouped = s.truth("group_query_attention", true);
  m.kv_heads = s.size("kv|num_query_groups", m.heads, 1, m.heads);
  if (!grouped) m.kv_heads = m.heads;
  m.head_dim = s.size("kv_channels", m.hidden / m.heads);
  m.ffn = s.size("ffn_hidden_size");
  m.vocab = s.size("vocab|vocab_size|padded_vocab_size");
  m.gated = s.truth("swiglu", false);
  m.norm_parts = s.find("normalization").text() == "RMSNorm" ? 1 : 2;
  m.bias = m.qkv_bias = m.norm_parts == 2 && !m.gated;
  m.tied = !s.truth("untie", s.truth("untie_embeddings_and_output_weights", false));
  m.mtp = s.size("mtp|mtp_num_layers", 0, 0, 64);
  m.output_gate = s.truth("attention_output_gate", false);
  const auto count = static_cast<size_t>(s.size("num_layers", {}, 1, kMaxModelLayers));
  std::vector<LayerForm> layers(count);
  s.find("seq|seq_length|sequence_length|model");
  if (const Value from = s.part("moe", ValueTag::kDict); from.is_dict()) {
    Sizes own(from);
    m.moe = read_megatron_experts(own, m.ffn);
    read_sparse_layers(own, "moe_layer_freq", layers);
    s.add(own);
  } else if (s.has("num_experts")) {
    m.moe = read_megatron_experts(s, m.ffn);
    read_sparse_layers(s, "moe_layer_freq", layers);
  }
  const auto latent = [](Sizes& own) {
    return LatentAttention{own.size("q_lora_rank", 0, 0), own.size("kv_lora_rank"), own.size("qk_head_dim"),
                           own.size("qk_pos_emb_head_dim"), own.size("v_head_dim")};
  };
  if (const Value from = s.part("mla", ValueTag::kDict); from.is_dict()) {
    Sizes own(from);
    m.mla = latent(own);
    s.add(own);
  } else if (s.truth("multi_latent_attention", false)) {
    m.mla = latent(s);
  }
  std::vector<LayerForm> mtp(static_cast<size_t>(m.mtp), {Mixer::kAttention, layers.back().moe});
  if (const std::string_view variant = s.find("experimental_attention_variant").text(); !variant.empty()) {
    if (variant != "gated_delta_net" && variant != "gdn2")
      return s.fail("the attention \"" + valid_utf8(std::string(variant)) + "\" is not known");
    m.delta = read_delta(s);
    m.delta->second = variant == "gdn2";
    const Value every = s.find("linear_attention_freq");
    const auto step = every.is_list() ? size_t{1} : static_cast<size_t>(s.size("linear_attention_freq", 1, 1));
    for (size_t i = 0; i < count + mtp.size(); ++i)
      if (every.is_list() ? every.item(i).integer().value_or(0) != 0 : (i + 1) % step != 0)
        (i < count ? layers[i] : mtp[i - count]).mixer = Mixer::kDelta;
  }
  if (const std::string_view pattern = s.find("hybrid_layer_pattern").text(); !pattern.empty()) {
    layers = read_pattern(s, m, pattern);
    mtp.clear();  // Megatron counts their heads alone
  }
  add_kinds(m, layers, mtp);
}

void read_experts(Sizes& s, Model& m, std::string_view type, std::vector<LayerForm>& layers) {
  Experts e{.count = s.size("num_local_experts|n_routed_experts|num_experts")};
  e.top_k = s.size("num_experts_per_tok|moe_router_topk", {}, 1, e.count);
  e.ffn = s.size("moe_intermediate_size|moe_ffn_hidden_size", m.ffn);
  e.shared = e.ffn * s.size("n_shared_experts", 0, 0, 10'000);
  if (e.shared == 0) e.shared = s.size("shared_expert_intermediate_size", 0, 0);
  e.router_bias = type == "deepseek_v3";
  m.moe = e;
  m.shared_gate = type == "qwen3_next" || type == "qwen2_moe";
  read_sparse_layers(s, "moe_layer_freq", layers);
  const auto first = static_cast<size_t>(s.size("first_k_dense_replace", 0, 0, kMaxModelLayers));
  const auto every = static_cast<size_t>(s.size("decoder_sparse_step", 1, 1, kMaxModelLayers));
  for (size_t i = 0; i < layers.size(); ++i) layers[i].moe = layers[i].moe && i >= first && (i + 1) % every == 0;
}

// Reads how each layer mixes its tokens: from a list, a pattern, or every n-th.
void read_mixers(Sizes& s, Model& m, const std::string& type, std::vector<LayerForm>& layers) {
  if (const std::string_view pattern = s.find("hybrid_override_pattern").text(); !pattern.empty()) {
    layers = read_pattern(s, m, pattern);
    return;
  }
  const double window = s.size("sliding_window", 0, 0);
  const bool slides = window > 0 && s.truth("use_sliding_window", true);
  if (const Value list = s.part("layer_types", ValueTag::kList); list.is_list()) {
    if (list.size() != layers.size()) return s.fail("layer_types has " + std::to_string(list.size()) + " layers");
    for (size_t i = 0; i < layers.size(); ++i) {
      const std::string_view one = list.item(i).text();
      if (one == "linear_attention") layers[i].mixer = Mixer::kDelta;
      else if (one == "sliding_attention") layers[i].mixer = Mixer::kWindow;
      else if (one != "full_attention")
        return s.fail("the layer type \"" + valid_utf8(std::string(one)) + "\" is not known");
    }
  } else if (type == "qwen3_next") {
    const auto every = static_cast<size_t>(s.size("full_attention_interval", 4, 1, kMaxModelLayers));
    for (size_t i = 0; i < layers.size(); ++i)
      if ((i + 1) % every != 0) layers[i].mixer = Mixer::kDelta;
  } else if (slides && (type == "gemma3" || type == "mistral")) {
    const auto full =
        static_cast<size_t>(s.size("sliding_window_pattern", type == "gemma3" ? 6 : 0, 0, kMaxModelLayers));
    for (size_t i = 0; i < layers.size(); ++i)
      if (full == 0 || (i + 1) % full != 0) layers[i].mixer = Mixer::kWindow;
  }
  m.window = window;
  if (std::ranges::any_of(layers, [](const LayerForm& form) { return form.mixer == Mixer::kDelta; }))
    m.delta = read_delta(s);
}

void read_huggingface(Sizes& s, Model& m, Value object, const std::string& type, ModelUse use) {
  m.type = type;
  const bool gpt2 = type == "gpt2", gpt = gpt2 || type == "gpt3" || type == "mpt" || type == "palm";
  m.hidden = s.size("hidden_size|n_embd|d_model");
  m.heads = s.size("num_attention_heads|n_head|n_heads", {}, 1, m.hidden);
  m.kv_heads = gpt2 ? m.heads : s.size("num_key_value_heads", m.heads, 1, m.heads);
  m.head_dim = s.size("head_dim", std::max(1.0, std::floor(m.hidden / m.heads)));
  m.ffn = s.size("intermediate_size|n_inner", gpt ? std::optional(4 * m.hidden) : std::nullopt);
  m.vocab = s.size("vocab_size");
  m.tied = s.truth("tie_word_embeddings", gpt2 || type == "mpt" || type == "gemma3");
  m.gated = !gpt && type != "nemotron_h";
  if (use == ModelUse::kFlops) m.gated = s.size("mlp_matrices", m.gated ? 3 : 2, 2, 3) == 3;
  m.norm_parts = gpt2 ? 2 : 1;
  m.bias = gpt2;
  m.qkv_bias = gpt2 || s.truth("attention_bias", type == "qwen2");
  m.qk_norm = type.starts_with("qwen3");
  m.output_gate = s.truth("attn_output_gate", type == "qwen3_next");
  m.positions = gpt ? s.size("n_positions", gpt2 ? std::nullopt : std::optional(0.0), 0) : 0;
  m.mtp = s.size("num_nextn_predict_layers", 0, 0, 64);
  std::vector<LayerForm> layers(
      static_cast<size_t>(s.size("num_hidden_layers|n_layer|n_layers", {}, 1, kMaxModelLayers)));
  if (s.has("num_local_experts|n_routed_experts|num_experts")) read_experts(s, m, type, layers);
  const LayerForm last{Mixer::kAttention, layers.back().moe};
  if (use == ModelUse::kFlops) read_mixers(s, m, type, layers);
  if (s.has("kv_lora_rank"))
    m.mla = LatentAttention{s.size("q_lora_rank", 0, 0), s.size("kv_lora_rank"), s.size("qk_nope_head_dim"),
                            s.size("qk_rope_head_dim"), s.size("v_head_dim")};
  add_kinds(m, layers, std::vector<LayerForm>(static_cast<size_t>(m.mtp), last));
  s.find(
      "q_lora_rank|qk_nope_head_dim|qk_rope_head_dim|qk_head_dim|v_head_dim|num_experts_per_tok|moe_intermediate_size");
  for (const char* key : {"moe", "mla"})
    if (s.has(key)) s.fail(std::string(key) + " belongs to a description in Megatron's terms");
  for (const char* key : {"rope_scaling", "vision_config"})
    if (!object[key].is_none()) m.notes.emplace_back(key);
  if (use == ModelUse::kPlan && !object["sliding_window"].is_none() && s.truth("use_sliding_window", true))
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

Result<Model> read_model(std::string_view json, const std::string& path, ModelUse use) {
  TRY(tree, parse_whole_json(json, path));
  Value root = tree->root();
  if (!root.is_dict())
    return make_error(ErrorCode::kBadInput, "this is no JSON object", "give the config.json of a model", {path});
  const std::string outer = valid_utf8(root["model_type"].text());
  const bool nested = root["text_config"].is_dict() && root["hidden_size"].is_none();
  if (nested) root = root["text_config"];
  std::string type = valid_utf8(root["model_type"].text());
  if (type.ends_with("_text")) type.resize(type.size() - 5);
  Model m;
  Sizes s(root, path);
  if (!root["ffn_hidden_size"].is_none() && type.empty()) {
    read_megatron(s, m);
  } else {
    if (type.empty()) type = "llama";
    if (!is_known(type, use))
      return make_error(ErrorCode::kBadInput, "the model_type \"" + type + "\" is not known",
                        "known: " + type_list(use), {path});
    read_huggingface(s, m, root, type, use);
  }
  if (nested && !outer.empty()) m.notes.emplace_back(outer + ": all but text_config");
  if (const Value list = s.part("layers", ValueTag::kList); list.is_list()) {
    read_layer_list(s, m, list);
    if (!m.kind_of.empty()) m.mtp_kind_of.assign(static_cast<size_t>(m.mtp), m.kind_of.back());
  }
  const bool planned =
      std::ranges::all_of(m.kinds, [](const LayerKind& kind) { return kind.mixer == Mixer::kAttention && kind.mlp; });
  if (use == ModelUse::kPlan && (!planned || (m.moe && m.moe->latent > 0)))
    s.fail("the memory of layers without full attention, or of latent experts, is not known");
  s.check_keys(false);
  TRY_OK(s.status());
  return m;
}

}  // namespace stageline::plan
