#include "plan/search_space.h"

namespace stageline::plan {
namespace {

bool allows(const std::vector<int32_t>& list, int32_t value) { return list.empty() || std::ranges::count(list, value); }

std::vector<int32_t> degrees(const std::vector<int32_t>& wanted, int32_t max, bool powers) {
  std::vector<int32_t> out;
  if (!wanted.empty()) return wanted;
  for (int32_t n = 1; n <= max; powers ? n *= 2 : ++n) out.push_back(n);
  return out;
}

// The layouts that divide experts and micro-batches in every way.
void for_each_inner_layout(const Wish& w, Layout l, const std::function<void(const Layout&)>& visit) {
  const bool moe = w.model.moe.has_value();
  const int64_t per_stage = int64_t{1} * l.tp * l.cp * l.dp;
  const std::vector<int32_t> one = {1}, sizes = {1, 2, 4, 8};
  const int32_t max_ep = moe ? std::min<int32_t>(l.tp * l.cp * l.dp, static_cast<int32_t>(w.model.moe->count)) : 1;
  for (const int32_t ep : moe ? degrees(w.ep, max_ep, true) : one) {
    if (moe && !divides(ep, w.model.moe->count)) continue;
    for (const int32_t etp : moe && !w.etp.empty() ? w.etp : one) {
      if (per_stage % (int64_t{1} * ep * etp) != 0) continue;
      for (const int32_t micro_batch : w.micro_batch.empty() ? sizes : w.micro_batch) {
        l.ep = ep, l.etp = etp, l.micro_batch = micro_batch;
        visit(l);
      }
    }
  }
}

}  // namespace

std::vector<const ScheduleDef*> schedules_of(const Wish& w) {
  std::vector<const ScheduleDef*> out;
  for (const ScheduleDef* def : schedules()) {
    const bool wanted = w.schedules.empty() || std::ranges::count(w.schedules, def->name);
    const auto& own = w.framework->schedules;
    const bool offered = !w.schedules.empty() || own.empty() || std::ranges::count(own, std::string_view(def->name));
    if (wanted && offered) out.push_back(def);
  }
  return out;
}

void for_each_layout(const Wish& w, const std::function<void(const Layout&)>& visit) {
  const Model& m = w.model;
  for (const int32_t tp : degrees(w.tp, w.per_node, false)) {
    if (w.tp.empty() && !divides(tp, w.per_node)) continue;
    if (!divides(tp, m.heads) || !divides(tp, m.kv_heads) || !divides(tp, m.ffn)) continue;
    for (const int32_t cp : degrees(w.cp, std::min(64, w.gpus), true)) {
      if (cp > 1 && !divides(2 * cp, w.sequence)) continue;
      if (!divides(tp * cp, w.sequence)) continue;
      for (const int32_t pp : degrees(w.pp, std::min<int32_t>(w.gpus, static_cast<int32_t>(m.layers()) + 2), false)) {
        const int64_t used = int64_t{1} * tp * cp * pp;
        if (used > w.gpus || w.gpus % used != 0) continue;
        const auto dp = static_cast<int32_t>(w.gpus / used);
        if (allows(w.dp, dp)) for_each_inner_layout(w, {tp, cp, 1, 1, pp, dp, 1, w.sequence}, visit);
      }
    }
  }
}

std::vector<int32_t> micro_batch_counts(const Wish& w, const Layout& l) {
  if (w.global_batch <= 0)
    return w.micro_batches.empty() ? std::vector<int32_t>{std::max(1, 4 * l.pp)} : w.micro_batches;
  const int64_t each = int64_t{1} * l.dp * l.micro_batch;
  if (w.global_batch % each != 0 || w.global_batch / each > 65'536) return {};
  const auto m = static_cast<int32_t>(w.global_batch / each);
  return allows(w.micro_batches, m) ? std::vector<int32_t>{m} : std::vector<int32_t>{};
}

std::vector<int32_t> chunk_counts(const Wish& w, const ScheduleDef& def, int32_t pp) {
  std::vector<int32_t> out;
  const bool fixed = def.default_chunks == def.max_chunks;
  for (int32_t v = fixed ? def.default_chunks : 2;
       v <= (fixed ? def.default_chunks : (w.chunks.empty() ? std::min(def.max_chunks, 12) : def.max_chunks)); ++v)
    if (allows(w.chunks, v) && (v == 1 || pp > 1) &&
        int64_t{1} * v * pp <= w.model.layers() + (w.framework->empty_stages ? 2 : 0))
      out.push_back(v);
  return out;
}

LayoutSums sums_of(const Wish& w, const Layout& l) {
  const Times times = w.recorded ? *w.recorded : estimated_times(w.model, l, w.rates);
  const LayoutBytes bytes = layout_bytes(w.model, l, w.rates.memory);
  LayoutSums s{.latency = static_cast<double>(times.latency)};
  const auto all = [](const LayerTime& t) { return static_cast<double>(t.sum()); };
  s.work = all(times.embedding) + all(times.head);
  s.way = s.work - static_cast<double>(times.head.weight + times.embedding.weight);
  s.states = bytes.embedding.sum() + bytes.head.sum();
  for (const uint8_t kind : w.model.kind_of) {
    const LayerTime& t = times.kinds[kind];
    s.work += all(t);
    s.way += static_cast<double>(t.forward + t.input);
    s.comm += static_cast<double>(t.forward_comm + t.input_comm);
    s.states += bytes.kinds[kind].states.sum();
    if (all(t) > 0) s.back_share = std::min(s.back_share, static_cast<double>(t.input + t.weight) / all(t));
  }
  return s;
}

double key_of(const LayoutSums& s, const ScheduleDef& def, int32_t pp, int32_t m, double overlap) {
  const std::string_view name = def.name;
  const bool overlapped = name.starts_with("dualpipe") || name == "vpp-ep-overlap";
  const double share = overlapped && overlap > 0 ? std::min(1.0, overlap) : 1;
  double key = std::max(m * (s.work - (overlapped ? s.comm : 0)) / pp * share, overlapped ? 0 : s.way);
  if (name == "1f1b") {
    const double slowest = s.work / pp;
    key = std::max(key,
                   s.work + slowest * ((m - 1) * s.back_share + std::max(0, m - pp) * (1 - s.back_share)) * 0.999999);
  }
  return key;
}

}  // namespace stageline::plan
