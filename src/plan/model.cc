#include "plan/model.h"

namespace stageline::plan {
namespace {

// Per token, in units of one multiplication for each weight; the cost of attention to a sequence is apart.
double megatron_mixer(const Model& m, const LayerKind& kind) {
  if (kind.mixer == Mixer::kDelta)
    return mixer_weights(m, kind) + 4 * m.delta->value_heads * m.delta->value_dim * m.delta->value_dim;
  if (kind.mixer == Mixer::kMamba) {  // its convolution is not counted, and the inner width is always 2 · hidden
    const double h = m.hidden, inner = 2 * h;
    return h * (2 * inner + 2 * m.mamba->groups * m.mamba->state + m.mamba->heads) + inner * h +
           3.5 * inner * m.mamba->state;
  }
  const double norms = m.mla ? m.mla->q_rank + m.mla->kv_rank : 0;
  return mixer_weights(m, kind) + (kind.mixer == Mixer::kNone ? 0 : norms);
}

double megatron_mlp(const Model& m, const LayerKind& kind) {
  if (!kind.mlp) return 0;
  const double h = m.hidden, w = m.mlp_weights();
  if (!kind.moe) return w * h * m.ffn;
  const Experts& e = *m.moe;
  const double routed = e.ffn * e.top_k * w;
  return h * w * e.shared + (e.latent > 0 ? e.latent * (routed + 2 * h) : h * routed);
}

}  // namespace

double mixer_weights(const Model& m, const LayerKind& kind) {
  const double h = m.hidden, a = m.heads;
  if (kind.mixer == Mixer::kNone) return 0;
  if (kind.mixer == Mixer::kDelta) {
    const DeltaNet& x = *m.delta;
    const double keys = x.keys(), values = x.values();
    const double into = x.second ? 4 * keys + 3 * values : 2 * keys + 2 * values + 2 * x.value_heads;
    return h * into + h * values + x.conv * (2 * keys + values);
  }
  if (kind.mixer == Mixer::kMamba) {
    const Mamba& x = *m.mamba;
    const double grouped = 2 * x.groups * x.state;
    return h * (2 * x.inner + grouped + x.heads) + x.inner * h + x.conv * (x.inner + grouped);
  }
  if (!m.mla) return h * m.head_dim * ((m.output_gate ? 3 : 2) * a + 2 * m.kv_heads);
  const LatentAttention& x = *m.mla;
  const double wide = x.key(), qr = x.q_rank, kr = x.kv_rank, v = x.value;
  return (qr > 0 ? qr * (h + a * wide) : h * a * wide) + h * (kr + x.rope) + kr * a * (x.nope + v) + a * v * h;
}

LayerParameters layer_parameters(const Model& m, const LayerKind& kind) {
  LayerParameters out;
  if (kind.custom) {
    out.mlp = kind.parameters;
    return out;
  }
  const double h = m.hidden, a = m.heads, q = m.kv_heads, d = m.head_dim, f = m.ffn;
  out.attention = mixer_weights(m, kind);
  if (m.mla) out.small = m.mla->q_rank + m.mla->kv_rank;
  else out.small = (m.qk_norm ? 2 * d : 0) + (m.qkv_bias ? d * (a + 2 * q) : 0) + (m.bias ? h : 0);
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

double total_parameters(const Model& m) {
  const double h = m.hidden;
  double sum = m.vocab * h * (m.tied ? 1 : 2) + m.norm_parts * h + m.positions * h;
  auto of_kind = mapped<double>(m.kinds, [&](const LayerKind& kind) { return layer_parameters(m, kind).sum(); });
  for (const uint8_t kind : m.kind_of) sum += of_kind[kind];
  return sum;
}

double layer_flops(const Model& m, const LayerKind& kind, double sequence) {
  if (kind.custom) return kind.flops_per_token;
  const bool attends = kind.mixer == Mixer::kAttention || kind.mixer == Mixer::kWindow;
  const double core = !attends ? 0 : m.mla ? m.heads * (m.mla->key() + m.mla->value) / 2 : m.head_dim * m.heads;
  return 6 * (megatron_mixer(m, kind) + core * sequence + megatron_mlp(m, kind));
}

double head_flops(const Model& m, double sequence) {
  const double h = m.hidden, n = m.hybrid ? 0 : m.mtp;
  double sum = 6 * (n * (3 * h + 2 * h * h) + h * m.vocab * (m.mtp + 1));
  for (const uint8_t kind : m.mtp_kind_of) sum += layer_flops(m, m.kinds[kind], sequence);
  return sum;
}

double total_flops(const Model& m, double sequence) {
  double sum = head_flops(m, sequence);
  for (const uint8_t kind : m.kind_of) sum += layer_flops(m, m.kinds[kind], sequence);
  return sum;
}

}  // namespace stageline::plan
