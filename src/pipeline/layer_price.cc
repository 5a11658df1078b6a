#include "pipeline/layer_price.h"

#include <algorithm>

#include "pipeline/what_if_fixes.h"

namespace stageline {

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
    if (c.kind != CauseKind::kSlowStage) continue;
    c.new_layers = list.new_layers;
    c.layers_ns = fix->price.saving_ns;
  }
  sort_causes(causes.causes);
}

}  // namespace stageline
