#include "engine/schedule_list.h"
#include "server/http/api_answer.h"
#include "server/pipeline/pipeline_view.h"
#include "server/pipeline/what_if_reply.h"

namespace stageline {
namespace {

// The priced run, within the memory that `query` describes. Errors: kUnavailable, whatever made pricing impossible,
// because the asker made no mistake; and those of the description.
Result<std::shared_ptr<const PricedRun>> priced(const PipelineView& view, const Query& query) {
  if (view.trace().cells.size() == 0)
    return make_error(ErrorCode::kUnavailable, "this run holds no pipeline cells",
                      "docs/formats says how they are found");
  const Result<PricedRun>& made = view.what_if();
  if (!made) {
    Error error = made.error();
    error.code = ErrorCode::kUnavailable, error.where = {};
    return error;
  }
  return view.what_if(query);
}

// The data that the page refers to by number, and the place where it draws.
AskedModel asked_model(const PipelineView& view, const PricedRun& run) {
  AskedModel asked{&run.model, {}, view.zero_ns(), {}, {}};
  if (run.bytes)
    asked.bytes = [&run](const Changes& changes) {
      return bytes_of_change(run.model, *run.bytes, changes, run.fixes.layers, run.fixes.layers);
    };
  for (const Fix& fix : run.fixes.fixes) asked.fixes.push_back(fix.changes);
  for (const Part& part : view.trace().parts) {
    asked.dp.push_back(part.dp);
    asked.stage.push_back(part.stage);
  }
  return asked;
}

}  // namespace

Result<std::string> pipeline_fixes_answer(const PipelineView& view, const Query& query) {
  const Result<std::shared_ptr<const PricedRun>> run = priced(view, query);
  if (!run && run.error().code == ErrorCode::kUnavailable && view.trace().cells.size() > 0)
    return unanswered_json(run.error());
  if (!run) return std::move(run).error();
  const WhatIf& model = (*run)->model;
  const OrderModel& order = model.order();
  JsonWriter json;
  json.begin_object();
  json.field_ns("recorded_ns", model.error().recorded_ns);
  json.field_ns("graph_ns", model.error().graph_ns);
  json.field_ns("order_ns", model.error().order_ns);
  json.field("stages", model.graph().stage_count);
  json.field("why_not", order.why_not().en).field("why_not_zh", order.why_not().in(true));
  json.key("schedule");
  if (order.known()) {
    const ScheduleCandidate& best = order.recognition().best();
    json.begin_object().field("name", best.name).field("chunks", best.sizes.chunks);
    json.field("micro_batches", best.sizes.micro_batches).field("stages", best.sizes.stages).end_object();
  } else {
    json.null();
  }
  json.objects("schedules", schedule_list(),
               [&](const ScheduleOffer& offer) { json.field("name", offer.name).field("chunks", offer.chunks); });
  json.objects("fixes", (*run)->fixes.fixes, [&](const Fix& fix) {
    json.field("id", fix.id).field("bound", fix.bound);
    json.field("name", fix.name.en).field("name_zh", fix.name.zh);
    json.field("assumes", fix.assumes.en).field("assumes_zh", fix.assumes.zh);
    json.field("how", fix.how.en).field("how_zh", fix.how.zh);
    write_price(json, fix.price);
    write_bytes(json, fix.bytes);
  });
  json.field("over_memory", (*run)->fixes.over_memory);
  if ((*run)->bytes) write_bytes(json, asked_model(view, **run).bytes({}));
  json.end_object();
  return json.take();
}

Result<std::string> pipeline_what_if_answer(const PipelineView& view, const Query& query) {
  TRY(run, priced(view, query));
  return what_if_reply(asked_model(view, **run), query);
}

std::string what_if_model_bytes(const PipelineView& view, size_t max_operations) {
  const Result<std::shared_ptr<const PricedRun>> run = priced(view, {});
  if (!run || (*run)->model.graph().size() > max_operations) return "";
  return packed_model(asked_model(view, **run));
}

}  // namespace stageline
