#include "diagnosis/what_if/layer_price.h"

#include <algorithm>

#include "base/number.h"
#include "diagnosis/what_if/what_if_fixes.h"
#include "plan/layer_split.h"

namespace stageline {
namespace {

constexpr size_t kMaxQuoted = 16;  // most virtual stages whose layout is quoted; longer ones are shown by what-if only

}  // namespace

bool has_slow_stage(const CauseList& causes) {
  return std::any_of(causes.causes.begin(), causes.causes.end(),
                     [](const Cause& c) { return c.kind == CauseKind::kSlowStage; });
}

void price_in_layers(WhatIf& model, CauseList& causes) {
  if (!has_slow_stage(causes)) return;
  FixOptions options;
  options.only_layers = true;
  const FixList list = price_fixes(model, options);
  const auto fix = std::find_if(list.fixes.begin(), list.fixes.end(), [](const Fix& x) { return x.id == "balance"; });
  if (fix == list.fixes.end()) return;
  for (Cause& c : causes.causes) {
    if (c.kind != CauseKind::kSlowStage || c.sometimes) continue;  // layers do not come and go
    c.new_layers = list.new_layers;
    c.layers_ns = fix->price.saving_ns;
  }
  sort_causes(causes.causes);
}

Text layer_words(const Cause& c, double step_ns, int32_t stages, bool paddle) {
  if (!(c.layers_ns > 0) || c.new_layers.empty() || c.unmovable) return {};
  Args args;
  args.flag("chunks", c.new_layers.size() > static_cast<size_t>(stages)).flag("little", c.layers_bring_little());
  args.flag("beats", c.saving_ns > 0 && c.layers_ns > c.saving_ns);
  args.set("now", grouped(kAssumedLayers)).set("less", percent(c.layers_ns / step_ns));
  if (c.new_layers.size() <= kMaxQuoted)
    args.set("then", layers_text(c.new_layers))
        .flag("paddle", paddle)
        .set("layout", paddle ? paddle_seg_method(c.new_layers) : megatron_layout(c.new_layers));
  return words("layers.split", args);
}

}  // namespace stageline
