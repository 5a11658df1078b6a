#include "cli/plan_json.h"

#include "base/json_writer.h"

namespace stageline {
namespace {

using namespace plan;

// The bytes of a rank at its peak.
void append_stage_json(JsonWriter& json, const Wish& wish, const Candidate& plan, int32_t rank) {
  const RankPeak& peak = plan.peaks[rank];
  const PeakBar bar = peak_bar(wish.model, plan.layout, wish.rates.memory);
  const auto whole = [](double bytes) { return static_cast<int64_t>(std::llround(bytes)); };
  json.begin_object().field("rank", rank);
  json.field("parameters", whole(peak.states.parameters)).field("gradients", whole(peak.states.gradients));
  json.field("optimizer", whole(peak.states.optimizer)).field("activations", whole(peak.activations));
  json.list("held", peak.held).field("recompute", whole(peak.recompute)).field("head", whole(peak.head));
  json.field("scratch", whole(peak.scratch));
  json.field("transient", whole(peak.transient)).field("other", whole(peak.other)).field("peak", whole(peak.sum()));
  json.field("low", whole(peak.sum() * bar.low)).field("high", whole(peak.sum() * bar.high));
  json.field("at", peak.cell).end_object();
}

// `rank`: its place in the list; 0: it is in no list.
void append_plan_json(JsonWriter& json, const PlanAnswer& answer, const Candidate& plan, int64_t rank) {
  const Layout& layout = plan.layout;
  json.begin_object();
  if (rank > 0) json.field("rank", rank);
  json.field("tp", layout.tp).field("pp", layout.pp).field("cp", layout.cp);
  json.field("ep", layout.ep).field("etp", layout.etp).field("dp", layout.dp);
  json.field("micro_batch_size", layout.micro_batch).field("micro_batches", plan.micro_batches);
  json.maybe("schedule", layout.pp > 1, plan.schedule).field("chunks", plan.chunks);
  json.maybe("group", plan.group > 0, plan.group).list("layers", plan.plan.layers());
  json.objects("recompute", plan.plan.recompute, [&](const Recompute& r) {
    json.field("kind", r.full > 0 ? "full" : r.modules ? "selective" : "none").field("layers", r.full);
    json.key("modules").begin_array();
    for (size_t k = 0; k < kModules; ++k)
      if (r.modules >> k & 1) json.value(module_name(static_cast<Module>(k), answer.wish.model.moe.has_value()));
    json.end_array();
  });
  json.field("step_ns", plan.step_ns).field("step_se_ns", std::llround(plan.error_ns));
  json.field("span_ns", plan.plan.span_ns);
  const double tokens =
      answer.wish.sequence * layout.micro_batch * plan.micro_batches / (double{1} * layout.tp * layout.cp * layout.pp);
  json.field("tokens_s_gpu", plan.step_ns > 0 ? tokens / (static_cast<double>(plan.step_ns) / 1e9) : kNaN);
  json.field("mfu", plan.mfu).field("bubble", plan.bubble).field("gap", plan.gap());
  const bool sized = answer.wish.model.sized();
  json.maybe("peak_bytes", sized, std::llround(plan.peak_bytes));
  json.maybe("needed_bytes", sized, std::llround(plan.needed_bytes));
  json.key("stages").begin_array();
  for (size_t r = 0; sized && r < plan.peaks.size(); ++r)
    append_stage_json(json, answer.wish, plan, static_cast<int32_t>(r));
  json.end_array().key("emit").begin_object();
  for (const Framework& f : frameworks())
    if (const auto text = emit_plan(f.name, answer.wish, plan)) json.field(f.name, *text);
  json.end_object().end_object();
}

// The times of layers, embedding and head that the first plan rests on.
void append_times_json(JsonWriter& json, const Wish& wish, const Candidate& plan) {
  const Times times = wish.recorded ? *wish.recorded : estimated_times(wish.model, plan.layout, wish.rates);
  const auto append = [&](const std::string& of, const LayerTime& t) {
    json.begin_object().field("of", of).field("forward_ns", t.forward).field("input_ns", t.input);
    json.field("weight_ns", t.weight).end_object();
  };
  json.key("parts").begin_array();
  for (size_t k = 0; k < times.kinds.size(); ++k) append(wish.model.kinds[k].name, times.kinds[k]);
  append("embedding", times.embedding), append("head", times.head);
  json.end_array();
}

// The model, and what its times rest on.
void append_basis_json(JsonWriter& json, const PlanAnswer& answer) {
  const Wish& wish = answer.wish;
  json.key("model").begin_object();
  json.field("type", wish.model.type).field("layers", wish.model.layers()).field("hidden_size", wish.model.hidden);
  json.field("parameters", std::llround(total_parameters(wish.model)));
  json.field("flops_per_token", total_flops(wish.model, wish.sequence));
  json.end_object().key("basis").begin_object().field("times", answer.from.empty() ? "estimated" : "recorded");
  json.maybe("run", !answer.from.empty(), answer.from).field("hardware", wish.rates.hardware.name);
  json.list("notes", wish.model.notes);
  json.objects("slow_stages", answer.slow,
               [&](const auto& slow) { json.field("stage", slow.first).field("longer", slow.second); });
  json.objects("memory", answer.memory, [&](const MeasuredStage& s) {
    json.field("stage", s.stage).field("measured_bytes", std::llround(s.measured_bytes));
    json.field("model_bytes", std::llround(s.model_bytes));
  });
  if (!answer.found.plans.empty()) append_times_json(json, wish, answer.found.plans.front());
  json.end_object().maybe("limit_bytes", wish.rates.memory.limit > 0, std::llround(wish.rates.memory.limit));
}

void append_searched_json(JsonWriter& json, const Found& found) {
  json.key("searched").begin_object().field("configurations", found.tried).field("of", found.layouts);
  json.field("rejected", found.rejected).field("complete", found.complete).field("bound_ns", found.bound_ns);
  json.field("gap", found.plans.empty() ? kNaN : found.gap()).end_object();
}

void append_compared_json(JsonWriter& json, const std::vector<memory_estimates::Estimate>& estimates) {
  json.key("compare").begin_object();
  for (const memory_estimates::Estimate& estimate : estimates) {
    json.key(estimate.tool).begin_object();
    for (const auto& [name, bytes] : estimate.bytes) json.field(name, std::llround(bytes));
    json.end_object();
  }
  json.end_object();
}

// The layout that misses least, and the single changes with which it fits.
void append_shortfall_json(JsonWriter& json, const PlanAnswer& answer, const Shortfall& shortfall) {
  json.begin_object().field("stage", shortfall.rank).field("excess_bytes", std::llround(shortfall.excess_bytes));
  json.key("parts");
  append_stage_json(json, answer.wish, shortfall.candidate, shortfall.rank);
  json.objects("fixes", shortfall.fixes, [&](const Shortfall::Fix& fix) {
    json.field("change", fix.change).field("needed", std::llround(fix.needed));
  });
  json.key("plan");
  append_plan_json(json, answer, shortfall.candidate, 0);
  json.end_object();
}

}  // namespace

std::string plan_json(const PlanAnswer& answer) {
  JsonWriter json;
  json.begin_object().field("schema", "stageline-plan-1");
  append_basis_json(json, answer);
  append_searched_json(json, answer.found);
  int64_t rank = 0;
  json.each("plans", answer.found.plans, [&](const Candidate& plan) { append_plan_json(json, answer, plan, ++rank); });
  json.objects("pareto", answer.found.pareto, [&](const Candidate& plan) {
    json.field("peak_bytes", std::llround(plan.peak_bytes)).field("step_ns", plan.step_ns).key("plan");
    append_plan_json(json, answer, plan, 0);
  });
  json.objects("sensitivity", answer.found.sensitivity, [&](const Sensitivity& s) {
    json.field("parameter", s.parameter).field("elasticity", s.elasticity);
    json.maybe("flips_at", s.flips_at > 0, s.flips_at);
  });
  append_compared_json(json, answer.compared);
  json.key("infeasible");
  if (answer.found.shortfall && answer.found.plans.empty())
    append_shortfall_json(json, answer, *answer.found.shortfall);
  else json.null();
  json.end_object();
  return json.take() + "\n";
}

}  // namespace stageline
