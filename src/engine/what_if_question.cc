#include "engine/what_if_question.h"

#include "diagnosis/explain.h"
#include "diagnosis/profile/profile_diff.h"
#include "exporters/table_text.h"
#include "schedules/registry.h"

namespace stageline {
namespace {

// A change to cells that do not exist, or that no mean counts, would be priced at nothing, so it is an error.
Status check_scales(const WhatIf& model, const std::vector<std::string>& texts, const Changes& own) {
  for (size_t i = 0; i < own.scales.size(); ++i) {
    const CellScale& scale = own.scales[i];
    const WhatIf::Touched touched = model.touched(scale);
    if (touched.counted > 0) continue;
    const bool send = scale.kind && is_send(*scale.kind);
    const std::string what = touched.all > 0 ? " fits only steps that are outliers, which the mean step leaves out"
                             : send          ? " changes nothing: a message takes its time where it is received"
                                             : " fits no operation of this run";
    const std::string hint = touched.all > 0 ? "stageline analyze stragglers lists slow steps"
                             : send          ? "write kind=RF or kind=RB with the stage or rank that receives"
                                             : "stageline info says which stages, ranks and steps there are";
    return make_error(ErrorCode::kUsage, "--scale " + valid_utf8(texts[i]) + what, hint);
  }
  return {};
}

}  // namespace

Result<WhatIfQuestion> what_if_question(const WhatIfWish& wish) {
  WhatIfQuestion a;
  const auto also = [&](const std::string& text) { append_item(a.name, text, "; "); };
  for (const std::string& text : wish.scales) {
    TRY(scale, parse_scale(text));
    a.own.scales.push_back(*scale);
    also(valid_utf8(text));
  }
  if (!wish.schedule.empty()) {
    TRY(schedule, schedule_named(wish.schedule));
    const std::string name((*schedule)->name);
    a.own.schedule = name;
    also("schedule " + name);
  }
  for (const auto& [flag, value, place] :
       {std::tuple("micro-batches", wish.micro_batches, &a.own.micro_batches),
        std::tuple("chunks", wish.chunks, &a.own.chunks), std::tuple("group", wish.group, &a.own.group)}) {
    if (!value) continue;
    if (*value < 1 || *value > 65'536)
      return make_error(ErrorCode::kUsage, "--" + std::string(flag) + " is a whole number from 1 to 65536");
    *place = static_cast<int32_t>(*value);
    const std::string noun = std::string(flag) == "chunks" ? "chunk" : "micro-batch";
    also(std::to_string(*value) + " " + noun +
         (*value == 1       ? ""
          : noun == "chunk" ? "s"
                            : "es") +
         (std::string(flag) == "group" ? " a group" : ""));
  }
  if (a.own.schedule.empty() && (a.own.chunks > 0 || a.own.group > 0))
    return make_error(ErrorCode::kUsage, "--chunks and --group go with --schedule");
  if (!wish.latency.empty()) {
    const std::optional<int64_t> latency = parse_duration(wish.latency);
    if (!latency || *latency < 0 || *latency > 3'600'000'000'000)
      return make_error(ErrorCode::kUsage, "--latency is a time from 0 to an hour, such as 200us");
    a.own.latency_ns = static_cast<double>(*latency);
    also("latency " + valid_utf8(wish.latency));
  }
  a.more_memory = wish.more_memory;
  a.layers = wish.layers;
  a.scales = wish.scales;
  return a;
}

Result<FixList> price_question(WhatIf& model, const WhatIfQuestion& question) {
  TRY_OK(check_scales(model, question.scales, question.own));
  FixOptions options;
  options.more_memory = question.more_memory;
  if (question.bytes) options.bytes = &*question.bytes;
  if (!question.layers.empty()) {
    const OrderModel& order = model.order();
    if (!order.known())
      return make_error(ErrorCode::kUnavailable, "--layers needs a recognised schedule: " + order.why_not().en,
                        "stageline analyze schedule shows what was compared");
    TRY(layers, parse_layers(question.layers, order.sizes().stages, order.sizes().chunks, order.layout()));
    options.layers = std::move(*layers);
    options.layers_divided = options.layers.size() > 1 && question.layers.find(',') == std::string::npos;
  }
  if (!(question.own == Changes{})) {
    options.own = {question.own};
    options.own_names = {question.name};
  }
  FixList list = price_fixes(model, options);
  for (const Fix& fix : list.fixes)
    if (fix.id == "own" && !fix.price.why_not.empty())
      return make_error(ErrorCode::kUsage, fix.name.en + ": " + fix.price.why_not.en, "stageline help schedules");
  return list;
}

Result<WhatIfAnswer> what_if_answer(const Run& run, const WhatIfQuestion& question, Diagnostics& notes) {
  WhatIfAnswer answer;
  const bool asks = !(question.own == Changes{}) || !question.layers.empty() || question.more_memory;
  if (run.trace().cells.size() == 0 && is_profile(run.trace()) && !asks) {
    TRY_OK(take(profile_fixes(run), answer.list));
    return answer;
  }
  TRY(model, what_if_of(run, notes));
  answer.model.emplace(std::move(*model));
  TRY_OK(take(price_question(*answer.model, question), answer.list));
  return answer;
}

std::string what_if_json(const FixList& list, const std::vector<Table>& tables) {
  JsonWriter json;
  json.begin_object();
  json.field("sentence", list.sentence.en).field("sentence_zh", list.sentence.zh);
  json.field("tried", list.tried).field("no_gain", list.no_gain).field("over_memory", list.over_memory);
  json.each("tables", tables, [&](const Table& table) { append_table_json(json, table); });
  return json.end_object().take();
}

}  // namespace stageline
