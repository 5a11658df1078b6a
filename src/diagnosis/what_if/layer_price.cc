#include "diagnosis/what_if/layer_price.h"

#include <algorithm>

#include "base/number.h"
#include "diagnosis/what_if/what_if_fixes.h"
#include "plan/layer_split.h"

namespace stageline {
namespace {

constexpr size_t kMostQuoted = 16;  // virtual stages: longer layouts are what-if's

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
    if (c.kind != CauseKind::kSlowStage) continue;
    c.new_layers = list.new_layers;
    c.layers_ns = fix->price.saving_ns;
  }
  sort_causes(causes.causes);
}

LayerWords layer_words(const Cause& c, double step_ns, int32_t stages) {
  if (!(c.layers_ns > 0) || c.new_layers.empty()) return {};
  const bool chunks = c.new_layers.size() > static_cast<size_t>(stages);
  const std::string less = percent(c.layers_ns / step_ns), now = grouped(kAssumedLayers);
  LayerWords words{" In whole layers, with " + now + " on every " + (chunks ? "chunk" : "stage") + " now, ",
                   "按整层计，若现在" + std::string(chunks ? "每个分块" : "各级") + "为 " + now + " 层，"};
  if (c.new_layers.size() <= kMostQuoted) {
    const std::string then = layers_text(c.new_layers), layout = megatron_layout(c.new_layers);
    words.en += then + " takes " + less + " less (Megatron: --pipeline-model-parallel-layout \"" + layout + "\")";
    words.zh +=
        "改为 " + then + " 每步少用 " + less + "（Megatron：--pipeline-model-parallel-layout \"" + layout + "\"）";
  } else {
    words.en += "the best split takes " + less + " less";
    words.zh += "最好的分法每步少用 " + less;
  }
  if (c.layers_bring_little()) {
    words.en += "; more needs a finer cut than layers";
    words.zh += "；更多则需要比整层更细的划分";
  }
  words.en += "; stageline what-if --layers prices it for your number of layers.";
  words.zh += "；实际层数请用 stageline what-if --layers 给出。";
  return words;
}

}  // namespace stageline
