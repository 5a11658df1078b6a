#include "plan/bytes.h"

namespace stageline::plan {
namespace {

constexpr double kElement = 2;  // bytes of an activation in bf16

bool keeps_whole(const MemoryOptions& o, bool pipeline) {
  return o.keeps_whole && pipeline && o.sharding == Sharding::kZero3;
}

// States of `count` parameters whose sharded parts are divided over `shards` ranks.
States states_of(double count, double shards, bool pipeline, const MemoryOptions& o) {
  const auto over = [&](Sharding from) { return o.sharding >= from ? shards : 1; };
  States s;
  if (o.sharding == Sharding::kZero3) {
    // Shards are fp32 and serve as master weights.
    s.parameters = count * (4 / shards + (keeps_whole(o, pipeline) ? o.parameter : 0));
    s.gradients = count * (4 / shards + (keeps_whole(o, pipeline) ? o.gradient : 0));
    s.optimizer = count * o.moments / shards;
  } else {
    const double cached = o.fp8 ? (o.parameter >= 2 ? 2 : 1) : 0;  // casts of the weights, and their transposes
    s.parameters = count * (o.parameter + cached);
    s.gradients = count * (o.gradient + (o.deepspeed_copy ? 2 : 0)) / over(Sharding::kZero2);
    s.optimizer = count * (o.master + o.moments) / over(Sharding::kDistributed);
  }
  return s;
}

// Bytes that one layer keeps for each token.
struct PerToken {
  double all = 0;
  std::array<double, kModules> saved = {};
};

PerToken kept_per_token(const Model& m, const LayerKind& kind, const Layout& l, const MemoryOptions& o) {
  PerToken out;
  if (kind.custom) return {.all = kind.act_bytes_per_token / l.tp, .saved = {}};
  const double t = l.tp, r = t, linear = o.fp8 ? 1 : kElement;  // input of a linear
  out.all = (kElement + linear) * m.hidden / r;                 // the layer's input, the first norm's output
  double attention_width = m.head_dim * m.heads;
  if (m.mla) {
    const LatentAttention& x = *m.mla;
    attention_width = m.heads * x.value;
    out.all += kElement * (2 * x.q_rank + 2 * x.kv_rank + x.rope) / r;
    const double up = kElement * m.heads * (2 * x.key() + x.value) / t;
    out.all += up + linear * attention_width / t;
    out.saved[static_cast<size_t>(Module::kUpProjection)] = up;
  } else {
    out.all += kElement * m.head_dim * (m.heads + 2 * m.kv_heads) / t + linear * attention_width / t;
  }
  out.all += 4 * m.heads / t;                               // log-sum-exp
  if (l.cp > 1) out.all += kElement * attention_width / t;  // the output before its all-to-all
  out.all += (kElement + linear) * m.hidden / r;            // the second norm's input and output
  out.saved[static_cast<size_t>(Module::kLayerNorm)] = 2 * linear * m.hidden / r;
  const double w = m.mlp_weights() - 1, full = kElement * w;
  double mlp = 0;
  if (kind.moe) {
    const Experts& e = *m.moe;
    const double rows = e.top_k * o.imbalance * (o.capacity > 0 ? o.capacity : 1);
    mlp = rows * (linear * m.hidden + (full + linear) * e.ffn / l.etp) + (full + linear) * e.shared / t;
    out.all += 8 * e.count / r;  // router: logits and probabilities in fp32
    out.saved[static_cast<size_t>(Module::kActivation)] = rows * linear * e.ffn / l.etp;
  } else {
    mlp = (full + linear) * m.ffn / t;
    out.saved[static_cast<size_t>(Module::kActivation)] = linear * m.ffn / t;
  }
  out.all += mlp;
  out.saved[static_cast<size_t>(Module::kMlp)] = mlp;
  if (m.bias && m.norm_parts == 2) out.all += 2 * m.hidden / r;  // dropout masks
  if (!o.flash) {
    const double scores = 5 * m.heads * l.sequence / l.cp / t;
    out.all += scores;
    out.saved[static_cast<size_t>(Module::kCoreAttention)] = scores;
  }
  return out;
}

// Weight shapes of a layer, of which TransformerEngine keeps one scratch gradient each.
using Shapes = std::set<std::pair<double, double>>;
void add_shapes(const Model& m, const LayerKind& kind, const Layout& l, Shapes& shapes) {
  if (kind.custom) return;
  const double h = m.hidden, t = l.tp, gate = m.gated ? 2 : 1;
  if (m.mla) {
    const LatentAttention& x = *m.mla;
    if (x.q_rank > 0) shapes.insert({x.q_rank, h});
    shapes.insert({m.heads * x.key() / t, x.q_rank > 0 ? x.q_rank : h});
    shapes.insert({x.kv_rank + x.rope, h});
    shapes.insert({m.heads * (x.nope + x.value) / t, x.kv_rank});
    shapes.insert({h, m.heads * x.value / t});
  } else {
    shapes.insert({m.head_dim * (m.heads + 2 * m.kv_heads) / t, h});
    shapes.insert({h, m.head_dim * m.heads / t});
  }
  const auto add_mlp = [&](double f) {
    if (f > 0) shapes.insert({gate * f, h}), shapes.insert({h, f});
  };
  if (kind.moe) add_mlp(m.moe->ffn / l.etp), add_mlp(m.moe->shared / t);
  else add_mlp(m.ffn / t);
}

}  // namespace

const char* module_name(Module module, bool moe) {
  switch (module) {
    case Module::kLayerNorm: return "layernorm";
    case Module::kActivation: return moe ? "moe_act" : "mlp_act";
    case Module::kUpProjection: return "mla_up_proj";
    case Module::kMlp: return moe ? "moe" : "mlp";
    case Module::kCoreAttention: return "core_attn";
  }
  return "";
}

LayoutBytes layout_bytes(const Model& m, const Layout& l, const MemoryOptions& o) {
  const double tokens = l.tokens(), t = l.tp, shards = double{1} * l.dp * l.cp;
  const double expert_shards = std::max(1.0, double{1} * l.dp * l.tp * l.cp / (l.ep * l.etp));
  LayoutBytes out;
  const auto dense_states = [&](double count) { return states_of(count, shards, l.pp > 1, o); };
  const auto layer_states = [&](const LayerKind& kind) {
    const LayerParameters p = layer_parameters(m, kind);
    States s = dense_states((p.attention + p.mlp) / t + p.small);
    s += states_of(p.experts / (l.ep * l.etp), expert_shards, l.pp > 1, o);
    return s;
  };
  const double dense_backward = kElement * tokens * (2 * m.ffn + m.hidden) / t;
  double largest_layer = 0;
  for (const LayerKind& kind : m.kinds) {
    LayerBytes b{.states = layer_states(kind)};
    const PerToken kept = kept_per_token(m, kind, l, o);
    b.act = kept.all * tokens;
    for (size_t i = 0; i < kModules; ++i) b.saved[i] = kept.saved[i] * tokens;
    b.input = kElement * m.hidden * tokens / t;
    if (!kind.custom) b.backward = dense_backward;
    if (kind.moe) {
      // Three buffers as large as an exchange, two of gate and up: fitted to two measured layouts.
      b.backward = std::max(b.backward, kElement * tokens * m.moe->top_k * (3 * m.hidden + 4 * m.moe->ffn));
      // I leaves the gradient of the second grouped linear's output behind, which F did not save.
      b.w_keeps = 1 + m.moe->top_k * m.hidden * tokens * kElement / b.act;
    }
    if (m.mla && b.act > 0) b.w_keeps -= kElement * m.heads * m.mla->rope * tokens / t / b.act;
    if (!o.flash) b.w_keeps = 32.0 / (34 + 5 * m.heads * l.sequence / m.hidden);
    if (o.w_keeps >= 0) b.w_keeps = o.w_keeps;
    const LayerParameters p = layer_parameters(m, kind);
    largest_layer = std::max(largest_layer, (p.attention + p.mlp) / t + p.small + p.experts / (l.ep * l.etp));
    out.kinds.push_back(b);
  }
  out.scratch.assign(size_t{1} << m.kinds.size(), 0);
  for (size_t mask = 1; o.scratch && mask < out.scratch.size(); ++mask) {
    Shapes shapes;
    for (size_t k = 0; k < m.kinds.size(); ++k)
      if (mask >> k & 1) add_shapes(m, m.kinds[k], l, shapes);
    for (const auto& [rows, columns] : shapes) out.scratch[mask] += kElement * rows * columns;
  }
  const double vocab = padded_vocab(m, t), table = vocab * m.hidden / t;
  out.embedding = dense_states(table + m.positions * m.hidden);
  const bool shares = m.tied && l.pp == 1;  // one table serves both ends
  out.head = dense_states((shares ? 0 : table + m.norm_parts * m.hidden));
  if (m.mtp > 0) {
    const LayerKind& kind = m.kinds[m.kind_of.back()];
    for (double i = 0; i < m.mtp; ++i) out.head += layer_states(kind);
    out.head += dense_states(m.mtp * (2 * m.hidden * m.hidden / t + 3 * m.hidden) + (l.pp > 1 ? table : 0));
    out.head_act = m.mtp * (out.kinds[m.kind_of.back()].act + 2 * kElement * m.hidden * tokens / t);
  }
  out.embedding_act = 8 * tokens;
  if (m.bias && m.norm_parts == 2) out.embedding_act += m.hidden * tokens / t;  // dropout mask
  const double logits = vocab * tokens / t;
  out.head_transient = kElement * (table + 2 * m.hidden * tokens + 2 * m.hidden * tokens / t) +
                       logits * (o.fused_loss ? kElement : kElement + 8);
  out.sent = kElement * m.hidden * tokens / t;
  // FSDP has the running and the prefetched layer whole, and one layer's gradient.
  if (o.sharding == Sharding::kZero3 && !keeps_whole(o, l.pp > 1)) out.other = largest_layer * (2 * 2 + 4);
  return out;
}

std::vector<RankHeld> held_moments(const Schedule& schedule) {
  std::vector<RankHeld> out(schedule.ranks.size());
  const size_t chunks = schedule.sizes.chunks;
  for (size_t r = 0; r < schedule.ranks.size(); ++r) {
    std::vector<int16_t> held(chunks, 0), waiting(chunks, 0);
    RankHeld& moments = out[r];
    const auto covers = [&](const HeldMoment& a, const HeldMoment& b) {
      if (a.chunk != b.chunk && b.chunk >= 0) return false;
      if (a.forward_chunk != b.forward_chunk && b.forward_chunk >= 0) return false;
      for (size_t c = 0; c < chunks; ++c)
        if (a.held[c] < b.held[c] || a.waiting[c] < b.waiting[c]) return false;
      return true;
    };
    const auto note = [&](const HeldMoment& now) {
      for (const HeldMoment& other : moments)
        if (covers(other, now)) return;
      std::erase_if(moments, [&](const HeldMoment& other) { return covers(now, other); });
      moments.push_back(now);
    };
    for (size_t i = 0; i < schedule.ranks[r].size(); ++i) {
      HeldMoment now{.cell = static_cast<int32_t>(i), .chunk = -1};
      const auto actions = schedule.ranks[r][i].actions();
      for (const Action& a : actions) {
        const auto chunk = static_cast<int16_t>(a.chunk);
        if (a.kind == CellKind::kForward) ++held[chunk], now.forward_chunk = chunk;
        else if (a.kind != CellKind::kWeightGrad) now.chunk = chunk;
      }
      now.held = held, now.waiting = waiting;
      note(now);
      for (const Action& a : actions) {
        if (a.kind == CellKind::kBackward) --held[a.chunk];
        if (a.kind == CellKind::kInputGrad) --held[a.chunk], ++waiting[a.chunk];
        if (a.kind == CellKind::kWeightGrad) --waiting[a.chunk];
      }
    }
  }
  return out;
}

RankPeak rank_peak(const LayoutBytes& bytes, const RankHeld& moments, const std::vector<ChunkBytes>& chunks) {
  RankPeak peak;
  uint32_t kinds = 0;
  for (const ChunkBytes& c : chunks) peak.states += c.states, kinds |= c.kinds;
  if (!bytes.scratch.empty()) peak.scratch = bytes.scratch[kinds];
  peak.other = bytes.other;
  double most = -1;
  for (const HeldMoment& moment : moments) {
    double held = 0, recompute = 0, transient = 0, head = 0;
    for (size_t c = 0; c < chunks.size(); ++c)
      held += moment.held[c] * chunks[c].act + moment.waiting[c] * chunks[c].kept_by_w;
    if (moment.chunk >= 0) {
      const ChunkBytes& c = chunks[moment.chunk];
      recompute = c.recompute, transient = c.backward, head = c.head;
    }
    if (moment.forward_chunk >= 0) head = std::max(head, chunks[moment.forward_chunk].head);
    // The layers' working set and the head's are never held together; the larger one counts.
    (head > transient ? transient : head) = 0;
    if (const double sum = held + recompute + transient + head; sum > most) {
      most = sum;
      peak.activations = held, peak.recompute = recompute, peak.transient = transient, peak.head = head;
      peak.cell = moment.cell;
      peak.held.assign(chunks.size(), 0);
      for (size_t c = 0; c < chunks.size(); ++c) peak.held[c] = moment.held[c] + moment.waiting[c];
    }
  }
  return peak;
}

PeakBar peak_bar(const Model& m, const Layout& l, const MemoryOptions& o) {
  PeakBar bar{0.998, 1.006};
  if (m.moe || l.cp > 1) bar = {0.995, 1.015};
  const bool custom = std::ranges::any_of(m.kinds, &LayerKind::custom);
  if (o.fp8 || custom || !o.flash || o.sharding == Sharding::kZero3 || o.keeps_sent) bar.high += 0.05;
  if (o.fp8) bar.low -= 0.1, bar.high += 0.05;
  return bar;
}

double needed(const RankPeak& peak, const PeakBar& bar, const MemoryOptions& o) {
  const double states = peak.states.sum(), rest = peak.sum() - states;
  return states * bar.high + rest * bar.high * o.fragmentation + o.reserve;
}

}  // namespace stageline::plan
