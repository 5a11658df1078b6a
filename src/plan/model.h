// The sizes of a model, read from its description: what the planner must know to count parameters, bytes and FLOPs.
//
// Three forms are read: config.json of HuggingFace, the same in Megatron's terms (num_layers, ffn_hidden_size, …), and
// either of them with "layers": [{"kind", "count", …}] for layers of any other kind. Definitions:
// docs/reference/plan.md.
#pragma once

#include "base/vocabulary.h"

namespace stageline::plan {

// Sizes are whole numbers up to 1e9, held as doubles because they only enter products.

// Multi-head latent attention (DeepSeek): ranks of the compressions and widths of one head.
struct LatentAttention {
  double q_rank = 0;  // 0: queries are not compressed
  double kv_rank = 0, nope = 0, rope = 0, value = 0;
  double key() const { return nope + rope; }
};

struct Experts {
  double count = 0, top_k = 0, ffn = 0;
  double shared = 0;  // width of the shared experts together; 0: none
  double latent = 0;  // width of the routed experts' inputs, where it is not `hidden`
  bool router_bias = false;
};

// Gated delta net, a linear attention. `second`: gdn2, with more projections.
struct DeltaNet {
  double key_dim = 0, value_dim = 0, key_heads = 0, value_heads = 0, conv = 0;
  bool second = false;
  double keys() const { return key_dim * key_heads; }
  double values() const { return value_dim * value_heads; }
};

struct Mamba {
  double state = 0, head_dim = 0, groups = 0, conv = 0;
  double heads = 0, inner = 0;
};

// The way in which a layer mixes its tokens. kWindow: attention to the last `Model::window` tokens.
enum class Mixer : uint8_t { kAttention, kWindow, kDelta, kMamba, kNone };

// One kind of layer. A custom kind states its sums itself.
struct LayerKind {
  std::string name = "dense";
  bool moe = false, custom = false;
  Mixer mixer = Mixer::kAttention;
  bool mlp = true;  // false: neither an MLP nor experts, as in hybrid models
  double parameters = 0, act_bytes_per_token = 0, flops_per_token = 0;  // of a custom kind; FLOPs of F and B
};

struct Model {
  std::string type;
  double hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, positions = 0;
  double mtp = 0;         // layers of multi-token prediction; they stand with the head
  double norm_parts = 1;  // parameters of a norm in units of `hidden`: 1 (RMSNorm) or 2 (LayerNorm)
  bool tied = false, gated = true, bias = false, qkv_bias = false, qk_norm = false;
  std::optional<LatentAttention> mla;
  std::optional<Experts> moe;
  std::optional<DeltaNet> delta;
  std::optional<Mamba> mamba;
  double window = 0;                         // tokens that kWindow sees
  bool output_gate = false;                  // of attention
  bool shared_gate = false;                  // of the shared experts
  bool hybrid = false;                       // layers by a pattern; each is one thing
  std::vector<LayerKind> kinds;              // at most 8
  std::vector<uint8_t> kind_of;              // for each layer
  std::vector<uint8_t> mtp_kind_of;          // for each of the `mtp` layers
  std::vector<std::string> notes;            // keys whose effect is not modelled
  bool sized() const { return hidden > 0; }  // false for the layers of a run whose model is not given
  int64_t layers() const { return static_cast<int64_t>(kind_of.size()); }
  double mlp_weights() const { return gated ? 3 : 2; }  // matrices of one MLP
};

inline constexpr int64_t kMaxModelLayers = 100'000;
inline constexpr size_t kMaxKinds = 8;

// FLOPs are known of more models than their memory.
enum class ModelUse : uint8_t { kPlan, kFlops };

// Reads a description. Unknown keys are ignored. Errors: kBadInput naming `path` and the key that is missing or not a
// size, or the model_type that is not known with the list of those that are.
Result<Model> read_model(std::string_view json, const std::string& path, ModelUse use = ModelUse::kPlan);

// Elements of the matrices that a token meets in a layer's attention or what stands for it.
double mixer_weights(const Model& model, const LayerKind& kind);

// The parameters of one layer, apart by how they are divided over devices.
struct LayerParameters {
  double attention = 0, mlp = 0;  // divided by tensor parallelism; mlp has the shared experts
  double small = 0;               // norms, router, biases: on every rank
  double experts = 0;             // divided by expert parallelism
  double sum() const { return attention + mlp + small + experts; }
};
LayerParameters layer_parameters(const Model& model, const LayerKind& kind);
double total_parameters(const Model& model);  // without MTP, as checkpoints count

// Model FLOPs of one token, forward and backward, as Megatron counts them: the causal half of attention, MTP included.
double layer_flops(const Model& model, const LayerKind& kind, double sequence);
double head_flops(const Model& model, double sequence);  // logits, and MTP
double total_flops(const Model& model, double sequence);

// The vocabulary padded to a multiple of 128 · tp, as Megatron does.
inline double padded_vocab(const Model& model, double tp) { return std::ceil(model.vocab / (128 * tp)) * 128 * tp; }

}  // namespace stageline::plan
