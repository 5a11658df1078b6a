#include "base/json_tree.h"
#include "plan/search.h"
#include "schedules/registry.h"

namespace stageline::plan {
namespace {

constexpr double kElement = 2;

// At most 5e17 ns, which is 16 years: times on absurd hardware still fit into 64 bits, and the search refuses them.
int64_t whole_ns(double ns) { return ns > 0 ? std::llround(std::min(ns, 5e17)) : 0; }

// The times of one device for products, exchanges and copies, all in nanoseconds.
class Device {
 public:
  explicit Device(const RateOptions& options) : o_(options), h_(options.hardware) {}

  // A product of (rows × inner) and (inner × columns); small ones reach less.
  double gemm_ns(double rows, double inner, double columns, bool grouped = false) const {
    if (rows <= 0 || inner <= 0 || columns <= 0) return 0;
    const double small = std::min({rows, inner, columns});
    const double reached = o_.mfu > 0 ? o_.mfu : (grouped ? h_.grouped : h_.gemm) / (1 + 128 / small);
    return 2 * rows * inner * columns / ((o_.fp8 && h_.fp8_flops > 0 ? h_.fp8_flops : h_.bf16_flops) * reached) * 1e9;
  }
  double attention_ns(double flops, bool backward) const {
    const double reached = o_.mfu > 0 ? o_.mfu : backward ? h_.attention_back : h_.attention;
    return flops / (h_.bf16_flops * reached) * 1e9;
  }
  double memory_ns(double bytes) const { return bytes / h_.hbm_bytes_s * 1e9; }
  // Ranks of a group stand in Megatron's order, so a group of `size` with `inside` faster dimensions spans
  // size · inside devices.
  bool crosses_nodes(double size, double inside) const { return size * inside > o_.per_node; }
  double link_ns(double bytes, double rounds, bool between_nodes) const {
    const double rate = (between_nodes ? h_.inter_bytes_s : h_.intra_bytes_s) * h_.link_share;
    return bytes / rate * 1e9 + rounds * (between_nodes ? h_.inter_ns : h_.intra_ns);
  }
  // A ring over `size` ranks that moves `bytes` in all: gather or scatter.
  double ring_ns(double bytes, double size, double inside) const {
    return size <= 1 ? 0 : link_ns(bytes * (size - 1) / size, size - 1, crosses_nodes(size, inside));
  }

 private:
  const RateOptions& o_;
  const Hardware& h_;
};

LayerTime layer_time(const Model& m, const LayerKind& kind, const Layout& l, const RateOptions& o) {
  const Device d(o);
  const double tokens = l.tokens(), t = l.tp;
  LayerTime out;
  if (kind.custom) {
    const double forward = d.gemm_ns(1e6, 1e6, kind.flops_per_token / 3 * tokens / t / 2e12);
    out.forward = out.input = out.weight = whole_ns(forward);
    return out;
  }
  double linear = 0, core = 0, up_projection = 0;
  double norms = d.memory_ns(2 * 3 * kElement * m.hidden * tokens / t);
  if (m.mla) {
    const LatentAttention& x = *m.mla;
    const double q_in = x.q_rank > 0 ? x.q_rank : m.hidden;
    up_projection =
        d.gemm_ns(tokens, q_in, m.heads * x.key() / t) + d.gemm_ns(tokens, x.kv_rank, m.heads * (x.nope + x.value) / t);
    linear = d.gemm_ns(tokens, m.hidden, x.q_rank) + d.gemm_ns(tokens, m.hidden, x.kv_rank + x.rope) + up_projection +
             d.gemm_ns(tokens, m.heads * x.value / t, m.hidden);
    core = m.heads * (x.key() + x.value) / 2;
  } else {
    linear = d.gemm_ns(tokens, m.hidden, m.head_dim * (m.heads + 2 * m.kv_heads) / t) +
             d.gemm_ns(tokens, m.head_dim * m.heads / t, m.hidden);
    core = m.head_dim * m.heads;
  }
  const double core_flops = 2 * core * l.sequence * tokens / t;
  double mlp = 0, exchange = 0, rows = tokens;
  const auto mlp_ns = [&](double count, double width, bool grouped) {
    return d.gemm_ns(count, m.hidden, (m.gated ? 2 : 1) * width, grouped) + d.gemm_ns(count, width, m.hidden, grouped);
  };
  if (kind.moe) {
    const Experts& e = *m.moe;
    rows = tokens * e.top_k * o.memory.imbalance * (o.memory.capacity > 0 ? o.memory.capacity : 1);
    mlp = mlp_ns(rows, e.ffn / l.etp, true) + mlp_ns(tokens, e.shared / t, false);
    norms += d.memory_ns(4 * kElement * m.hidden * rows);  // permuting tokens there and back
    if (l.ep > 1)
      exchange = 2 * d.link_ns(kElement * m.hidden * rows * (l.ep - 1) / l.ep, l.ep - 1,
                               d.crosses_nodes(double{1} * l.ep * l.etp, 1));
  } else {
    mlp = mlp_ns(tokens, m.ffn / t, false);
  }
  const double activation =
      d.memory_ns(m.mlp_weights() * kElement * (kind.moe ? rows * m.moe->ffn / l.etp : tokens * m.ffn / t));
  const double whole = kElement * m.hidden * tokens;
  const double tp_comm = 4 * d.ring_ns(whole, t, 1);  // two gathers, two scatters
  const double cp_bytes = kElement * m.head_dim * (2 * m.heads + 2 * m.kv_heads) * tokens / t;
  const double cp_comm = l.cp > 1 ? d.link_ns(cp_bytes * (l.cp - 1) / l.cp, l.cp - 1, d.crosses_nodes(l.cp, t)) : 0;
  const double comm = tp_comm + exchange + cp_comm;
  const double forward = linear + mlp + d.attention_ns(core_flops, false) + norms + activation;
  out.forward = whole_ns(forward + comm);
  out.input = whole_ns(linear + mlp + d.attention_ns(2.5 * core_flops, true) + 2 * (norms + activation) + comm);
  out.weight = whole_ns(linear + mlp);
  // Only exchanges between experts run beside the other half of an overlapped cell.
  out.forward_comm = out.input_comm = whole_ns(exchange);
  const auto again = [&](Module module) -> int64_t& { return out.again[static_cast<size_t>(module)]; };
  again(Module::kLayerNorm) = whole_ns(norms);
  again(Module::kActivation) = whole_ns(activation);
  again(Module::kUpProjection) = whole_ns(up_projection);
  again(Module::kMlp) = whole_ns(mlp + activation + exchange + tp_comm / 2);
  again(Module::kCoreAttention) = whole_ns(d.attention_ns(core_flops, false));
  return out;
}

}  // namespace

const std::vector<Hardware>& known_hardware() {
  // Data sheets: dense peak, HBM, links of one device and direction. Ascend's numbers are uncertain.
  const auto device = [](const char* name, double bf16, double fp8, double hbm, double gb, double intra, double inter) {
    Hardware h{.name = name};
    h.bf16_flops = bf16 * 1e12, h.fp8_flops = fp8 * 1e12, h.hbm_bytes_s = hbm * 1e12;
    h.memory = gb == 80 ? 79.6 * (1 << 30) : gb * 1e9 * 1.06;
    h.intra_bytes_s = intra * 1e9, h.inter_bytes_s = inter * 1e9;
    if (std::string_view(name).find("B200") != std::string_view::npos)
      h.gemm = 0.49, h.grouped = 0.30, h.attention = h.attention_back = 0.70;  // measured
    return h;
  };
  static const std::vector<Hardware> list = {
      device("A100-80G-SXM", 312, 0, 2.04, 80, 300, 25), device("A100-40G-SXM", 312, 0, 1.56, 40, 300, 25),
      device("H100-SXM", 989, 1979, 3.35, 80, 450, 50),  device("H800-SXM", 989, 1979, 3.35, 80, 200, 50),
      device("H200-SXM", 989, 1979, 4.8, 141, 450, 50),  device("B200", 2250, 4500, 8.0, 180, 900, 50),
      device("GB200", 2500, 5000, 8.0, 186, 900, 50),    device("MI300X", 1307, 2614, 5.3, 192, 448, 50),
      device("910B", 313, 0, 1.6, 64, 196, 25)};
  return list;
}

Result<Hardware> read_hardware(std::string_view json, const std::string& path) {
  TRY(tree, parse_whole_json(json, path));
  const Value root = tree->root();
  Hardware h;
  std::vector<std::string> devices, keys = {"base", "name"};
  for (const Hardware& known : known_hardware()) {
    devices.push_back(known.name);
    if (root["base"].text() == known.name) h = known;
  }
  std::string wrong;
  for (const char* key : {"base", "name"})
    if (!root[key].is_none() && root[key].tag() != ValueTag::kText) wrong = std::string(key) + " is no text";
  if (wrong.empty() && !root["base"].is_none() && !std::ranges::count(devices, root["base"].text()))
    wrong = "base is no device that is known";
  if (!root["name"].text().empty()) h.name = valid_utf8(root["name"].text());
  const auto take = [&](const char* key, double unit, double max, bool none, double& into) {
    keys.emplace_back(key);
    const Value value = root[key];
    const std::optional<double> number = value.tag() == ValueTag::kText ? std::nullopt : value.real();
    if (number) into = *number * unit;
    const bool good = number && (*number > 0 || (none && *number == 0)) && *number <= max;
    if (!value.is_none() && !good && wrong.empty())
      wrong = std::string(key) + " is not a number " + (none ? "from 0 to " : "above 0 up to ") + repr_double(max);
  };
  take("bf16_tflops", 1e12, 1e9, false, h.bf16_flops), take("fp8_tflops", 1e12, 1e9, true, h.fp8_flops);
  take("hbm_tb_s", 1e12, 1e6, false, h.hbm_bytes_s), take("hbm_gb", 1e9, 1e9, false, h.memory);
  take("intra_gb_s", 1e9, 1e9, false, h.intra_bytes_s), take("inter_gb_s", 1e9, 1e9, false, h.inter_bytes_s);
  take("gemm", 1, 1, false, h.gemm), take("grouped", 1, 1, false, h.grouped);
  take("attention", 1, 1, false, h.attention), take("attention_backward", 1, 1, false, h.attention_back);
  take("link_share", 1, 1, false, h.link_share);
  take("intra_ns", 1, 1e9, true, h.intra_ns), take("inter_ns", 1, 1e9, true, h.inter_ns);
  for (size_t i = 0; i < root.size() && root.is_dict(); ++i)
    if (const std::string key(root.key(i).text()); wrong.empty() && !std::ranges::count(keys, key)) {
      const std::string near = nearest(key, keys);
      wrong = "the key \"" + valid_utf8(key) + "\" is not known" + (near.empty() ? "" : "; did you mean " + near + "?");
    }
  if (!root.is_dict()) wrong = "this is no JSON object";
  if (!wrong.empty())
    return make_error(
        ErrorCode::kBadInput, wrong,
        "keys: base, name, bf16_tflops, fp8_tflops, hbm_tb_s, hbm_gb, "
        "intra_gb_s, inter_gb_s, gemm, grouped, attention, attention_backward, link_share, intra_ns, inter_ns",
        {path});
  return h;
}

Times estimated_times(const Model& m, const Layout& l, const RateOptions& o) {
  const Device d(o);
  Times times;
  for (const LayerKind& kind : m.kinds) times.kinds.push_back(layer_time(m, kind, l, o));
  const double tokens = l.tokens(), t = l.tp, whole = kElement * m.hidden * tokens;
  times.embedding.forward = whole_ns(d.memory_ns(3 * whole / t) + d.ring_ns(whole, t, 1));
  times.embedding.input = whole_ns(d.memory_ns(4 * whole / t) + d.ring_ns(whole, t, 1));
  const double vocab = padded_vocab(m, t) / t;
  const double logits = d.gemm_ns(tokens, m.hidden, vocab), loss = d.memory_ns(6 * kElement * tokens * vocab);
  times.head.forward = whole_ns(logits + loss + d.ring_ns(whole, t, 1));
  times.head.input = whole_ns(logits + loss / 2 + 2 * d.ring_ns(whole, t, 1));
  times.head.weight = whole_ns(logits);
  if (m.mtp > 0) {
    const LayerTime& layer = times.kinds[m.kind_of.back()];
    const double projection = d.gemm_ns(tokens, 2 * m.hidden, m.hidden / t) + logits + loss;
    times.head.forward += whole_ns(m.mtp * (static_cast<double>(layer.forward) + projection));
    times.head.input += whole_ns(m.mtp * (static_cast<double>(layer.input) + projection));
    times.head.weight += whole_ns(m.mtp * (static_cast<double>(layer.weight) + projection));
  }
  if (l.pp > 1) times.latency = whole_ns(d.link_ns(whole / t, 1, d.crosses_nodes(2, double{1} * t * l.cp * l.dp)));
  const bool whole_stage = o.memory.keeps_whole && l.pp > 1;
  if (o.memory.sharding == Sharding::kZero3 && !whole_stage) {
    // Each layer's parameters are gathered during the layer before it; the longer of both counts.
    for (size_t k = 0; k < times.kinds.size(); ++k) {
      const LayerParameters p = layer_parameters(m, m.kinds[k]);
      const double bytes = kElement * ((p.attention + p.mlp) / t + p.small + p.experts / (l.ep * l.etp));
      const auto gather = whole_ns(d.ring_ns(bytes, double{1} * l.dp * l.cp, t));
      times.kinds[k].forward = std::max<int64_t>(times.kinds[k].forward, gather);
      times.kinds[k].input = std::max<int64_t>(times.kinds[k].input, gather);
    }
  }
  for_each_time(times, [&](const char*, int64_t& ns) { ns = whole_ns(static_cast<double>(ns) * o.scale); });
  return times;
}

void for_each_time(Times& times, const std::function<void(const char* name, int64_t& ns)>& visit) {
  const auto all = [&](LayerTime& t, const char* forward, const char* backward) {
    visit(forward, t.forward), visit(backward, t.input), visit(backward, t.weight);
    visit(forward, t.forward_comm), visit(backward, t.input_comm);
    for (int64_t& ns : t.again) visit(forward, ns);
  };
  for (LayerTime& kind : times.kinds) all(kind, "layer.F", "layer.B");
  all(times.embedding, "embedding", "embedding"), all(times.head, "head.F", "head.B");
  visit("latency", times.latency);
  for (auto* list : {&times.there, &times.back})
    for (int64_t& ns : *list) visit("latency", ns);
}

Status calibrate(const Model& m, const std::vector<MeasuredStep>& steps, RateOptions& o) {
  // For each measured step the estimated span of its cells, and what its ends add.
  const auto estimate = [&](const MeasuredStep& step, double& span, double& ends) -> Status {
    ScheduleSizes sizes;
    sizes.stages = step.layout.pp, sizes.micro_batches = step.micro_batches;
    TRY(schedule, make_schedule("1f1b", sizes));
    PlanProblem p = problem_of(std::move(*schedule), m, step.layout, o.memory);
    p.times = estimated_times(m, step.layout, o);
    const Plan plan = plan_of(even_layers(p.kind_of.size(), p.stages()));
    TRY(cells, cells_of(p, stage_times(p, LayerSums(p), plan)));
    span = static_cast<double>(span_of(*cells));
    ends = static_cast<double>(step_ns(p, plan, *cells, step_ends(p, plan, step.layout, o))) - span;
    return {};
  };
  std::vector<double> spans(steps.size()), ends(steps.size()), slopes;
  double sum = 0, wanted = 0;
  for (size_t i = 0; i < steps.size(); ++i) TRY_OK(estimate(steps[i], spans[i], ends[i]));
  for (size_t i = 0; i < steps.size(); ++i) {
    sum += spans[i] + ends[i], wanted += steps[i].step_ns;
    for (size_t k = 0; k < i; ++k)
      if (steps[i].layout == steps[k].layout && steps[i].micro_batches != steps[k].micro_batches)
        slopes.push_back((steps[i].step_ns - steps[k].step_ns) / (spans[i] - spans[k]));
  }
  o.scale = o.ends_scale = wanted / std::max(1.0, sum);
  if (slopes.empty()) return {};
  std::ranges::sort(slopes);
  o.scale = std::max(1e-3, slopes[slopes.size() / 2]);
  // The time of the ends, with the cells at this scale.
  o.ends_scale = 1;
  double rest = 0, estimated = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    TRY_OK(estimate(steps[i], spans[i], ends[i]));
    rest += steps[i].step_ns - spans[i], estimated += ends[i];
  }
  o.ends_scale = std::max(0.0, rest / std::max(1.0, estimated));
  return {};
}

StepEnds step_ends(const PlanProblem& p, const Plan& plan, const Layout& l, const RateOptions& o) {
  const Device d(o);
  StepEnds ends;
  ends.scale = o.ends_scale;
  const double shards = double{1} * l.dp * l.cp;
  for (int32_t r = 0; r < p.ranks(); ++r) {
    const States states = peak_of(p, r, plan).states;
    // Parameters of the rank, from the bytes of the copy that computes.
    const bool sharded = o.memory.sharding == Sharding::kZero3, kept = sharded && o.memory.keeps_whole && l.pp > 1;
    const double each = sharded ? 4 / shards + (kept ? o.memory.parameter : 0) : o.memory.parameter;
    const double count = each > 0 ? states.parameters / each : 0;
    const bool whole = o.memory.sharding == Sharding::kReplicated;
    const double gradients = o.memory.gradient * count;
    ends.reduce_ns.push_back(d.ring_ns(gradients, shards, l.tp) * (whole ? 2 : 1));
    ends.gather_ns.push_back(whole || (sharded && !kept) ? 0 : d.ring_ns(kElement * count, shards, l.tp));
    const double owned = whole ? count : count / shards;
    const double norm = 2 * o.hardware.inter_ns * std::log2(std::max(1.0, shards * l.tp * l.pp));
    ends.optimizer_ns.push_back(owned * 30 / (0.8 * o.hardware.hbm_bytes_s) * 1e9 + norm);
  }
  return ends;
}

int64_t step_ns(const PlanProblem& p, const Plan& plan, const std::vector<std::vector<ReplayedCell>>& cells,
                const StepEnds& ends) {
  double last = 0, span = 0, shift = 0, tail = 0;
  const std::vector<int32_t> layers = plan.layers();
  for (int32_t r = 0; r < p.ranks(); ++r) {
    if (cells[r].empty()) continue;
    double own = 0;
    for (int32_t c = 0; c < p.schedule.sizes.chunks; ++c) own += layers[virtual_stage(p.schedule, r, c)];
    own = std::max(1.0, own);
    const auto length = [](const ReplayedCell& cell) { return static_cast<double>(cell.end_ns - cell.start_ns); };
    // The first layer's parameters come before its forward, the rest during it; gradients the other way round.
    const double gather =
        std::max(ends.gather_ns[r] / own, ends.gather_ns[r] - length(cells[r].front()) * (own - 1) / own);
    shift = std::max(shift, gather - static_cast<double>(cells[r].front().start_ns));
    const double reduce =
        std::max(ends.reduce_ns[r] / own, ends.reduce_ns[r] - length(cells[r].back()) * (own - 1) / own);
    last = std::max(last, static_cast<double>(cells[r].back().end_ns));
    span = std::max(span, static_cast<double>(cells[r].back().end_ns) + reduce);
    tail = std::max(tail, ends.optimizer_ns[r]);
  }
  return std::llround(std::min(last + ends.scale * (span - last + std::max(0.0, shift) + tail), 4e18));
}

}  // namespace stageline::plan
