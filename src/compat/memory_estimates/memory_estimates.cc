#include "compat/memory_estimates/memory_estimates.h"

namespace stageline::memory_estimates {

using namespace plan;
namespace {

// A model in the terms of Megatron's estimators.
struct Terms {
  explicit Terms(const Model& m)
      : h(m.hidden), a(m.heads), q(m.kv_heads), channels(m.head_dim), ffn(m.ffn), gate(m.gated ? 1.5 : 1) {
    bool last_is_moe = false;
    for (const uint8_t kind : m.kind_of) {
      last_is_moe = m.kinds[kind].moe;
      (last_is_moe ? moe : dense) += 1;
    }
    layers = dense + moe;
    (last_is_moe ? mtp_moe : mtp_dense) = m.mtp;
    if (m.moe) experts = m.moe->count, expert_ffn = m.moe->ffn, shared = m.moe->shared, top_k = m.moe->top_k;
    dense_mlp = 2 * h * ffn * gate;
    shared_mlp = 2 * h * shared * gate;
    routed_mlp = 2 * h * expert_ffn * experts * gate;
    // The parameters of grouped-query attention, also where it is latent.
    plain_attention = 2 * h * h * (1 + q / a) * (channels * a / h);
  }
  double h, a, q, channels, ffn, gate;
  double dense = 0, moe = 0, layers = 0, mtp_dense = 0, mtp_moe = 0;
  double experts = 0, expert_ffn = 0, shared = 0, top_k = 0;
  double dense_mlp = 0, shared_mlp = 0, routed_mlp = 0, plain_attention = 0;
};

double interleaving(const Layout& l, const Input& in) {
  if (in.chunks > 1) return 1 + (l.pp - 1) / (double{1} * l.pp * in.chunks);
  return l.pp > 1 ? std::min(1.0, in.micro_batches / (double{1} * l.pp)) : 1;
}

double state_bytes(bool distributed, double shards) { return distributed ? 6 + 12 / shards : 18; }

Estimate megatron(const Model& m, const Layout& l, const Input& in) {
  const Terms t(m);
  const double vocab = padded_vocab(m, l.tp), norms = m.norm_parts, s = l.sequence, b = l.micro_batch, pp = l.pp;
  double attention = t.plain_attention;
  if (m.mla) {
    const LatentAttention& x = *m.mla;
    const double query = x.q_rank > 0 ? x.q_rank * (t.h + t.a * x.key() + norms) : t.h * t.a * x.key();
    attention = query + x.kv_rank * (t.h + t.a * (x.nope + x.value) + norms) + t.h * x.rope + t.a * x.value * t.h;
  }
  const double router = t.h * t.experts + (m.gated ? 0 : t.experts);
  const auto sharded = [&](double dense, double moe) {
    return (attention + t.dense_mlp) * dense + (attention + t.shared_mlp) * moe;
  };
  const auto replicated = [&](double dense, double moe) {
    return 2 * t.h * norms * dense + (2 * t.h * norms + router) * moe;
  };
  double tp_part = (sharded(t.dense, t.moe) / pp + sharded(t.mtp_dense, t.mtp_moe) + t.h * vocab) / l.tp;
  const double rest = (replicated(t.dense, t.moe) + norms * t.h) / pp + replicated(t.mtp_dense, t.mtp_moe);
  const double expert = t.routed_mlp * (t.moe / pp + t.mtp_moe) / (double{1} * l.etp * l.ep);
  if (!m.tied && l.pp == 1) tp_part += t.h * vocab / l.tp;
  const double weights =
      (tp_part + rest) * state_bytes(in.distributed, std::max(1.0, in.world / (double{1} * l.tp * l.pp * l.cp))) +
      expert * state_bytes(in.distributed, std::max(1.0, std::floor(in.world / (double{1} * l.etp * l.ep * l.pp))));
  const double factor = interleaving(l, in), input = 8 * s * b * pp + s * b * t.h * pp;
  double with_sp = (s * b * t.h * (18 + 4 * t.ffn / t.h) * t.layers + input) * factor;
  double without = (s * b * t.h * (10 + 24 / (double{1} * l.tp)) * t.layers + input) * factor;
  if (l.pp == 1) {
    with_sp += s * b * t.h * 4 * (1 + vocab / t.h);
    without += (s * b * vocab / l.tp + s * b * t.h) * 2;
  }
  return {
      "megatron",
      {{"weight_opt_bytes", weights}, {"act_sp_selective_bytes", with_sp / l.tp}, {"act_no_sp_bytes", without * 1.05}}};
}

Estimate bridge(const Model& m, const Layout& l, const Input& in) {
  const Terms t(m);
  const double vocab = padded_vocab(m, l.tp), s = l.sequence, b = l.micro_batch, pp = l.pp;
  const double dense = t.dense + t.mtp_dense, moe = t.moe + t.mtp_moe, table = t.h * vocab;
  const double base = (t.plain_attention + t.dense_mlp) * dense + (t.plain_attention + t.shared_mlp) * moe +
                      4 * t.h * (dense + moe) + 2 * t.h;
  const double expert = t.routed_mlp * moe, parameters = base + expert + table * (m.tied ? 1 : 2);
  const double shard = (base / pp + table + (!m.tied && l.pp == 1 ? table : 0)) / l.tp;
  const double expert_shards = std::max(1.0, std::floor(in.world / (pp * l.ep * l.etp)));
  const double states = shard * state_bytes(in.distributed, double{1} * l.dp * l.cp) +
                        expert / (pp * l.ep * l.etp) * state_bytes(in.distributed, expert_shards);
  double act =
      s * b * t.h * ((18 + 4 * t.ffn / t.h) * dense + (18 + 4 * (t.expert_ffn * t.top_k + t.shared) / t.h) * moe) +
      pp * (8 * s * b + s * b * t.h);
  act *= interleaving(l, in);
  if (l.pp == 1) act += s * b * t.h * 4 * (1 + vocab / t.h);
  return {
      "bridge",
      {{"states_bytes", states}, {"activation_bytes", act / (double{1} * l.tp * l.cp)}, {"parameters", parameters}}};
}

// 2 + 2 + 10 ÷ DP bytes a parameter with DP = world ÷ (EP · PP).
Estimate primus(const Model& m, const Layout& l, const Input& in) {
  const double parameters = total_parameters(m) / (double{1} * l.tp * l.pp);
  const double shards = std::max(1.0, in.world / (double{1} * l.ep * l.pp));
  return {"primus", {{"states_bytes", parameters * (4 + 10 / shards)}}};
}

// The estimators of ZeRO 2 and 3, which know neither activations nor pipelines.
Estimate deepspeed(const Model& m, const Input& in) {
  const double n = total_parameters(m), gpus = std::max(1.0, in.world);
  double largest = max_over<double>(m.kinds, [&](const LayerKind& kind) { return layer_parameters(m, kind).sum(); });
  largest = std::max(largest, m.vocab * m.hidden);
  return {"deepspeed", {{"zero2_bytes", 2 * n + 18 * n / gpus}, {"zero3_bytes", 4 * largest + 18 * n / gpus}}};
}

}  // namespace

double paper_activations(const Model& m, const Layout& l, int32_t chunks, std::string_view mode) {
  const double s = l.sequence, t = l.tp, scores = 5 * m.heads * s / m.hidden;
  const double each = mode == "none"        ? 10 + 24 / t + scores / t
                      : mode == "sp"        ? (34 + scores) / t
                      : mode == "selective" ? 10 + 24 / t
                      : mode == "full"      ? 2
                                            : 34 / t;
  const double factor = chunks > 1 ? 1 + (l.pp - 1) / (double{1} * l.pp * chunks) : 1;
  return s * l.micro_batch * m.hidden * each * static_cast<double>(m.layers()) * factor;
}

std::vector<Estimate> estimates(const Model& m, const Layout& l, const Input& in) {
  std::vector<Estimate> out = {megatron(m, l, in), bridge(m, l, in), primus(m, l, in), deepspeed(m, in)};
  Estimate paper{"arxiv-2205.05198", {}};
  for (const char* mode : {"none", "sp", "selective", "sp+selective", "full"})
    paper.bytes.emplace_back(std::string("activations_") + mode, paper_activations(m, l, in.chunks, mode));
  paper.bytes.emplace_back(
      "states_bytes", 12.0 * static_cast<double>(m.layers()) * m.hidden * m.hidden * 18 / (double{1} * l.tp * l.pp));
  out.push_back(std::move(paper));
  return out;
}

}  // namespace stageline::memory_estimates
