#include "diagnosis/what_if/what_if_answer.h"

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "model/statistics.h"

namespace stageline {
namespace {

using Type = ColumnType;

constexpr double kMaxFactor = 1000;
constexpr int64_t kLongestNs = 3'600'000'000'000;  // an hour

Error bad_scale(std::string_view text, const std::string& why) {
  return {ErrorCode::kUsage,
          "--scale " + valid_utf8(text) + ": " + why,
          {},
          "write which cells and how: stage=3,kind=F,by=0.9 or rank=5,set=3ms; keys stage, rank, dp, kind, chunk, "
          "micro-batch, step, by, set"};
}

}  // namespace

Result<CellScale> parse_scale(std::string_view text) {
  CellScale scale;
  bool said = false;
  std::vector<std::string> keys;
  for (const std::string_view word : split(text, ',')) {
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) return bad_scale(text, "\"" + valid_utf8(word) + "\" is not KEY=VALUE");
    const std::string key = dashed(trim(word.substr(0, equals)));
    const std::string_view value = trim(word.substr(equals + 1));
    const std::string name = key == "mb" ? "micro-batch" : key;
    if (name != "by" && name != "set" && std::find(keys.begin(), keys.end(), name) != keys.end())
      return bad_scale(text, valid_utf8(key) + " is said twice; several --scale apply in turn");
    keys.push_back(name);
    if (key == "kind") {
      scale.kind = kind_from_code(value);
      if (!scale.kind)
        return bad_scale(text,
                         "no kind \"" + valid_utf8(value) + "\"; kinds are F, B, I, W, F&B, SF, RF, SB, RB, C, O");
      continue;
    }
    if (key == "by" || key == "set") {
      if (said) return bad_scale(text, "by and set are said once, one of them");
      said = true;
      if (key == "by") {
        const auto by = parse_double(value);
        if (!by || !(*by >= 0) || *by > kMaxFactor) return bad_scale(text, "by is a factor from 0 to 1000");
        scale.by = *by;
      } else {
        const auto ns = parse_duration(value);
        if (!ns || *ns < 0 || *ns > kLongestNs) return bad_scale(text, "set is a time from 0 to an hour");
        scale.set_ns = static_cast<double>(*ns);
      }
      continue;
    }
    int32_t* const place = key == "stage"                        ? &scale.stage
                           : key == "rank"                       ? &scale.rank
                           : key == "dp"                         ? &scale.dp
                           : key == "chunk"                      ? &scale.chunk
                           : key == "micro-batch" || key == "mb" ? &scale.micro_batch
                           : key == "step"                       ? &scale.step
                                                                 : nullptr;
    if (!place) return bad_scale(text, "no key \"" + valid_utf8(key) + "\"");
    const auto number = parse_int(value);
    if (!number || *number < 0 || *number > INT32_MAX)
      return bad_scale(text, key + " is a whole number, not \"" + valid_utf8(value) + "\"");
    *place = static_cast<int32_t>(*number);
  }
  if (!said) return bad_scale(text, "it says no by=FACTOR or set=TIME");
  return scale;
}

std::vector<Table> what_if_tables(const WhatIf& model, const FixList& list) {
  const ModelError& error = model.error();
  const OrderModel& order = model.order();
  Table base("what-if-base", "What prices stand on",
             {{"recorded_ns", "step", Type::kDuration,
               "Recorded step, from its start to the next one's: mean over the steps that count"},
              {"steps", "steps", Type::kInteger, "Steps that count: outlier steps do not"},
              {"graph_ns", "replayed", Type::kDuration, "Replay of the recorded operations as they were"},
              {"graph_error_share", "model error", Type::kShare, "Replayed ÷ recorded − 1"},
              {"order_ns", "replayed schedule", Type::kDuration,
               "Replay of the order that ran with the run's own cells: what other orders are compared with"},
              {"order_error_share", "its error", Type::kShare, "Replayed schedule ÷ recorded − 1"},
              {"schedule", "schedule", Type::kText, "The recognised schedule; empty without"},
              {"held", "activations", Type::kReal,
               "Most activations that a rank holds at once, in those of one micro-batch on one stage"}});
  int64_t steps = 0;
  for (const uint8_t counts : model.counts()) steps += counts;
  base.add_row({whole_ns(error.recorded_ns), steps, whole_ns(error.graph_ns),
                share_of(error.graph_ns - error.recorded_ns, error.recorded_ns), whole_ns(error.order_ns),
                share_of(error.order_ns - error.recorded_ns, error.recorded_ns),
                order.known() ? order.recognition().best().name : std::string(),
                order.known() ? order.present().max_held() : kNaN});
  Table fixes(
      "fixes", "Fixes and what they save, the largest first, then bounds",
      {{"fix", "fix", Type::kText, "Kind of fix; own: what was asked with --scale and its kin"},
       {"what", "what", Type::kText, "What changes"},
       {"saving_ns", "saves", Type::kDuration,
        "Replay of the run as it is − replay with the fix, mean over steps; below 0 it costs"},
       {"saving_share", "of the step", Type::kShare, "Saving ÷ recorded step"},
       {"step_ns", "new step", Type::kDuration,
        "Recorded step − saving; of more micro-batches the time of as many as now"},
       {"error_ns", "standard error", Type::kDuration, "Standard error of the saving over steps; empty of one step"},
       {"steps", "steps", Type::kInteger, "Steps that the price stands on"},
       {"held", "activations", Type::kReal,
        "Most activations that a rank then holds, in those of one micro-batch on one stage"},
       {"bound", "bound", Type::kInteger, "1: a bound, no fix that anybody can make as such"},
       {"per", "per", Type::kText,
        "step; or micro-batch: steps of another size, times are those of as many micro-batches as now"},
       {"assumption", "assumes", Type::kText, "What the price rests on"},
       {"how", "how", Type::kText, "How to do it"}});
  for (const Fix& fix : list.fixes)
    fixes.add_row({fix.id, fix.name.en, whole_ns(fix.price.saving_ns), fix.price.share(), whole_ns(fix.price.step_ns),
                   whole_ns(fix.price.error_ns), fix.price.steps, fix.price.held, int64_t{fix.bound},
                   std::string(fix.changes.micro_batches > 0 ? "micro-batch" : "step"), fix.assumes.en, fix.how.en});
  std::vector<Table> tables = {std::move(base), std::move(fixes)};
  if (list.layers.empty()) return tables;
  Table layers("layers", "Layers, stage by stage",
               {{"virtual_stage", "virtual stage", Type::kInteger, "Place on the way of a micro-batch"},
                {"stage", "stage", Type::kInteger, "Pipeline stage that holds it"},
                {"layers", "layers", Type::kInteger, "Layers now, as said or assumed"},
                {"new_layers", "balanced", Type::kInteger,
                 "Layers in the split that a replay finds best; as now where none gains"},
                {"cost_ns", "time", Type::kDuration, "Forward and backward of one micro-batch, median over replicas"},
                {"constant_ns", "of that constant", Type::kDuration, "What moves with no layer: embedding, head"}});
  const StageCosts& stages = order.stages();
  for (size_t s = 0; s < list.layers.size(); ++s) {
    double cost = 0, constant = 0;
    for (size_t d = 0; d < kDirections; ++d) {
      cost += stages.cost_ns[s][d];
      constant += model.layers().constant_ns[s][d];
    }
    layers.add_row({static_cast<int64_t>(s), int64_t{stages.owner[s]}, int64_t{list.layers[s]},
                    s < list.new_layers.size() ? int64_t{list.new_layers[s]} : kNullInteger, whole_ns(cost),
                    whole_ns(constant)});
  }
  tables.push_back(std::move(layers));
  return tables;
}

}  // namespace stageline
