#include "diagnosis/what_if/layer_price.h"

#include "diagnosis/what_if/what_if_fixes.h"
#include "facts/pipeline_facts.h"
#include "plan/search.h"

namespace stageline {
namespace {

constexpr size_t kMaxQuoted = 16;  // most virtual stages whose layout is quoted; longer ones are shown by what-if only

Text amount(double saving_ns, double step_ns) {
  return words("cause.amount",
               Args().set("time", human_duration(saving_ns)).set("share", percent(saving_ns / step_ns)));
}

// Puts the saving of whole layers into a sentence; "" for a cause whose layers save nothing elsewhere. `stages` is the
// number of ranks in a pipeline; with `paddle` the split is written as Paddle takes it.
Text layer_words(const CausePrice& price, const FixList& list, const Text& bytes, double step_ns, int32_t stages,
                 bool paddle) {
  const std::vector<int32_t>& layers = list.new_layers;
  const double saving_ns = price.fix.saving_ns;
  if (!(saving_ns > 0) || layers.empty() || price.unmovable) return {};
  Args args;
  if (price.falls_short()) args.set("than_even", words(price.fix_brings_little() ? "layers.little" : "layers.less"));
  else if (price.saving_ns > 0 && saving_ns > price.saving_ns) args.set("than_even", words("layers.more"));
  args.set("now", grouped(kAssumedLayers));
  args.set("less", amount(saving_ns, step_ns)).set("bytes", bytes);
  const bool quoted = layers.size() <= kMaxQuoted, chunks = layers.size() > static_cast<size_t>(stages);
  if (quoted)
    args.set("then", layers_text(layers))
        .set("layout", paddle ? paddle_seg_method(layers) : plan::write_megatron_layout(layers));
  args.set("today", !list.layers_assumed ? Text{layers_text(list.layers), layers_text(list.layers)}
                                         : words(chunks ? "layers.per_chunk" : "layers.per_stage", args));
  args.set("split", words(!quoted ? "layers.best" : paddle ? "layers.paddle" : "layers.megatron", args));
  Text text = words("layers.split", args);
  text += words("layers.set", args);
  return text;
}

bool has_layers_to_move(const CauseList& causes) {
  return std::ranges::any_of(causes.causes, [](const Cause& c) { return c.kind->of_layers; });
}

void price_in_layers(WhatIf& model, const Trace& trace, const StageBytes* bytes, CauseList& causes) {
  FixOptions options{.only = FixOptions::Only::kLayers, .bytes = bytes};
  const FixList list = price_fixes(model, options);
  const auto fix = std::find_if(list.fixes.begin(), list.fixes.end(), [](const Fix& x) { return x.id == "balance"; });
  if (fix == list.fixes.end()) return;
  int32_t stages = max_over<int32_t>(trace.parts, [&](const Part& part) { return part.stage + 1; }, 1);
  for (Cause& c : causes.causes) {
    if (!c.kind->of_layers || c.sometimes) continue;  // layers do not come and go
    c.price.fix.saving_ns = fix->price.saving_ns;
    c.price.fix.words =
        layer_words(c.price, list, fix->bytes, causes.step_ns, stages, trace.format.starts_with("paddle"));
  }
  sort_causes(causes.causes);
}

CauseList priced_causes(const Run& run, const StageBytes* bytes) {
  CauseList causes = causes_of(run);
  const RunGraph& free = graph_of(run, LaunchRule::kFree);
  if (!free.graph || causes.not_analysable || !coverage_of(run).whole() || !has_layers_to_move(causes)) return causes;
  Diagnostics notes;
  WhatIf model = WhatIf::of(run, free.graph, notes, WhatIfUse::kOrders);
  price_in_layers(model, run.trace(), bytes, causes);
  return causes;
}

struct LayersFact {
  using Value = CauseList;
  static Value make(const Run& run) { return priced_causes(run, nullptr); }
};

}  // namespace

bool has_links_to_hide(const CauseList& causes) {
  return std::any_of(causes.causes.begin(), causes.causes.end(), [](const Cause& c) { return c.kind->of_links; });
}

void price_in_flight(WhatIf& model, const StageBytes* bytes, CauseList& causes) {
  if (!has_links_to_hide(causes)) return;
  FixOptions options{.only = FixOptions::Only::kInFlight, .bytes = bytes};
  const FixList list = price_fixes(model, options);
  if (list.fixes.empty()) return;
  const Fix& fix = list.fixes.front();
  Args args;
  args.set("name", fix.name).set("bytes", fix.bytes).set("how", fix.how);
  args.set("less", amount(fix.price.saving_ns, causes.step_ns));
  for (Cause& c : causes.causes)
    if (c.kind->of_links) c.price.fix.words = words("links.in_flight", args);
}

CauseList causes_in_layers(const Run& run, const StageBytes* bytes) {
  return bytes ? priced_causes(run, bytes) : run.fact<LayersFact>();
}

}  // namespace stageline
