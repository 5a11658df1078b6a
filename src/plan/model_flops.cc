#include "plan/model_flops.h"

namespace stageline::plan {
namespace {

bool attends(const LayerKind& kind) {
  return !kind.custom && (kind.mixer == Mixer::kAttention || kind.mixer == Mixer::kWindow);
}

// Widths of a query and a value, over all heads.
double attention_width(const Model& m) { return m.heads * (m.mla ? m.mla->key() + m.mla->value : 2 * m.head_dim); }

double mlp_weights(const Model& m, const LayerKind& kind, double experts) {
  if (!kind.mlp) return 0;
  const double h = m.hidden, w = m.mlp_weights();
  if (!kind.moe) return w * h * m.ffn;
  const Experts& e = *m.moe;
  const double routed = e.latent > 0 ? w * e.latent * experts * e.ffn + 2 * h * e.latent : w * h * experts * e.ffn;
  return routed + w * h * e.shared + h * e.count;
}

double forward_flops(const Model& m, const LayerKind& kind, const SequenceLengths& lengths) {
  const double tokens = lengths.tokens();
  if (kind.custom) return kind.flops_per_token / 3 * tokens;
  double weights = mixer_weights(m, kind) + (kind.moe ? mlp_weights(m, kind, m.moe->top_k) : mlp_weights(m, kind, 0));
  if (kind.moe && m.shared_gate) weights += m.hidden;
  double flops = 2 * weights * tokens;
  if (attends(kind)) flops += 2 * attention_width(m) * lengths.pairs(kind.mixer == Mixer::kWindow ? m.window : 0);
  if (kind.mixer == Mixer::kDelta) flops += 8 * m.delta->value_heads * m.delta->key_dim * m.delta->value_dim * tokens;
  if (kind.mixer == Mixer::kMamba) flops += 7 * m.mamba->inner * m.mamba->state * tokens;
  return flops;
}

// Adds up what a function says of every layer.
template <class Of> double over_layers(const Model& m, Of of) {
  auto of_kind = mapped<double>(m.kinds, [&](const LayerKind& kind) { return of(kind); });
  return sum_over<double>(m.kind_of, [&](const uint8_t kind) { return of_kind[kind]; });
}

// Both embeddings as matrices, half of the square.
double verl_flops(const Model& m, const SequenceLengths& lengths) {
  const double weights = over_layers(m, [&](const LayerKind& kind) {
    const double h = m.hidden, w = m.mlp_weights();
    return h * m.head_dim * (2 * m.heads + 2 * m.kv_heads) +
           (kind.moe ? w * h * m.moe->top_k * m.moe->ffn + h * m.moe->count : w * h * m.ffn);
  });
  return 6 * (weights + 2 * m.vocab * m.hidden) * lengths.tokens() +
         6 * lengths.squares() * m.head_dim * m.heads * static_cast<double>(m.layers());
}

// The router counted, half of the square, layers of multi-token prediction without a head.
double maxtext_flops(const Model& m, const SequenceLengths& lengths) {
  const auto layer = [&](const LayerKind& kind) {
    return 2 * lengths.tokens() * (mixer_weights(m, kind) + mlp_weights(m, kind, kind.moe ? m.moe->top_k : 0)) +
           lengths.squares() * attention_width(m);
  };
  double sum = over_layers(m, layer) + 2 * lengths.tokens() * m.hidden * m.vocab;
  for (const uint8_t kind : m.mtp_kind_of) sum += layer(m.kinds[kind]);
  return 3 * sum;
}

}  // namespace

double SequenceLengths::sum(int power) const {
  double sum = 0;
  for (const auto& [length, count] : count_of) sum += count * (power == 2 ? length * length : length);
  return sum;
}

double SequenceLengths::pairs(double window) const {
  double sum = 0;
  for (const auto& [length, count] : count_of) {
    const double keys = window > 0 ? std::min(window, length) : length;
    sum += count * (keys * (keys + 1) / 2 + (length - keys) * keys);
  }
  return sum;
}

double model_flops(const Model& m, const SequenceLengths& lengths) {
  const double h = m.hidden, tokens = lengths.tokens();
  double forward = over_layers(m, [&](const LayerKind& kind) { return forward_flops(m, kind, lengths); });
  forward += 2 * h * m.vocab * tokens;
  for (const uint8_t kind : m.mtp_kind_of)
    forward += forward_flops(m, m.kinds[kind], lengths) + 2 * (2 * h * h + h * m.vocab) * tokens;
  return 3 * forward;
}

MatrixParameters matrix_parameters(const Model& m) {
  const auto layer = [&](bool all) {
    return over_layers(m, [&](const LayerKind& kind) {
      if (kind.custom) return kind.parameters;
      return mixer_weights(m, kind) + mlp_weights(m, kind, !kind.moe ? 0 : all ? m.moe->count : m.moe->top_k);
    });
  };
  const double ends = m.vocab * m.hidden * (m.tied ? 1 : 2) + m.positions * m.hidden;
  return {layer(true) + ends, layer(false) + ends};
}

std::vector<FlopsByFormula> flops_by_formula(const Model& m, const SequenceLengths& lengths) {
  const double tokens = lengths.tokens(), squares = lengths.squares();
  const double layers = static_cast<double>(m.layers()), embedding = m.vocab * m.hidden;
  const MatrixParameters parameters = matrix_parameters(m);
  const bool whole = std::ranges::all_of(
      m.kinds, [](const LayerKind& kind) { return kind.mixer == Mixer::kAttention && kind.mlp && !kind.custom; });
  const double attending = over_layers(m, [](const LayerKind& kind) { return attends(kind) ? 1.0 : 0.0; });
  const double met = parameters.active - (m.tied ? 0 : embedding);
  return {{"stageline", model_flops(m, lengths)},
          {"megatron", tokens > 0 ? total_flops(m, squares / tokens) * tokens : 0},
          {"palm", 6 * parameters.all * tokens + 12 * layers * m.heads * m.head_dim * squares},
          {"llm-foundry", 6 * parameters.all * tokens + 12 * layers * m.hidden * squares},
          {"torchtitan", 6 * met * tokens + 6 * attending * attention_width(m) * squares},
          {"hf", 6 * (parameters.all - embedding * (m.tied ? 1 : 2)) * tokens},
          {"verl", whole && !m.mla ? verl_flops(m, lengths) : kNaN},
          {"maxtext", whole ? maxtext_flops(m, lengths) : kNaN}};
}

}  // namespace stageline::plan
