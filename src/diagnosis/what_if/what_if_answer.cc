#include "diagnosis/what_if/what_if_fixes.h"
#include "model/statistics.h"

namespace stageline {
namespace {

constexpr double kMaxFactor = 1000;
constexpr int64_t kLongestNs = 3'600'000'000'000;  // an hour

Error bad_scale(std::string_view text, const std::string& why) {
  return make_error(
      ErrorCode::kUsage, "--scale " + valid_utf8(text) + ": " + why,
      "write which cells and how: stage=3,kind=F,by=0.9 or rank=5,set=3ms; keys stage, rank, dp, kind, chunk, "
      "micro-batch, step, by, set");
}

Table base_table(const WhatIf* model, const FixList& list) {
  Table base(declared_table("what-if/what-if-base"));
  if (!model) {
    base.add_row({whole_ns(list.step_ns), list.steps > 0 ? list.steps : kNullInteger, kNullInteger, kNaN, kNullInteger,
                  kNaN, std::string(), kNaN});
    return base;
  }
  const ModelError& error = model->error();
  const OrderModel& order = model->order();
  const int64_t steps = sum_over<int64_t>(model->counts());
  base.add_row({whole_ns(error.recorded_ns), steps, whole_ns(error.graph_ns),
                share_of(error.graph_ns - error.recorded_ns, error.recorded_ns), whole_ns(error.order_ns),
                share_of(error.order_ns - error.recorded_ns, error.recorded_ns),
                order.known() ? order.recognition().best().name : std::string(),
                order.known() ? order.present().max_held() : kNaN});
  return base;
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

Table memory_table(const std::vector<MeasuredStage>& memory) {
  constexpr double kGiB = 1 << 30;
  Table table(declared_table("what-if/memory"));
  for (const MeasuredStage& s : memory)
    table.add_row({int64_t{s.stage}, s.measured_bytes / kGiB, s.model_bytes / kGiB,
                   (s.measured_bytes - s.model_bytes) / kGiB,
                   s.model_bytes > 0 ? s.measured_bytes / s.model_bytes - 1 : kNaN});
  return table;
}

std::vector<Table> what_if_tables(const WhatIf* model, const FixList& list) {
  Table fixes(declared_table("what-if/fixes"));
  for (const Fix& fix : list.fixes)
    fixes.add_row({fix.id, fix.name.en, whole_ns(fix.price.saving_ns), fix.price.share(), whole_ns(fix.price.step_ns),
                   whole_ns(fix.price.error_ns), fix.price.steps, fix.price.held, int64_t{fix.bound},
                   std::string(fix.changes.micro_batches > 0 ? "micro-batch" : "step"), fix.assumes.en, fix.how.en});
  std::vector<Table> tables = {base_table(model, list), std::move(fixes)};
  if (list.layers.empty()) return tables;
  Table layers(declared_table("what-if/layers"));
  const StageCosts& stages = model->order().stages();
  for (size_t s = 0; s < list.layers.size(); ++s) {
    double cost = 0, constant = 0;
    for (size_t d = 0; d < kDirections; ++d) {
      cost += stages.cost_ns[s][d];
      constant += model->layers().constant_ns[s][d];
    }
    layers.add_row({static_cast<int64_t>(s), int64_t{stages.owner[s]}, int64_t{list.layers[s]},
                    s < list.new_layers.size() ? int64_t{list.new_layers[s]} : kNullInteger, whole_ns(cost),
                    whole_ns(constant)});
  }
  tables.push_back(std::move(layers));
  if (!list.memory.empty()) tables.push_back(memory_table(list.memory));
  return tables;
}

}  // namespace stageline
