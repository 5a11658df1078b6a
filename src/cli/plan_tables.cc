#include "cli/plan_tables.h"

#include "diagnosis/what_if/what_if_fixes.h"
#include "schedules/registry.h"

namespace stageline {
namespace {

using namespace plan;

constexpr double kGiB = 1 << 30;

// Short names of modules, for tables; whole ones are in what is typed.
constexpr const char* kShort[kModules] = {"norm", "act", "up", "mlp", "attn"};

// Returns the items as texts; equal neighbours are one of them: "2×8 7".
template <class T> std::string counted(const std::vector<T>& list, std::string (*text)(const T&)) {
  std::string out;
  for (size_t s = 0, end = 0; s < list.size(); s = end) {
    while (end < list.size() && list[end] == list[s]) ++end;
    append_item(out, (end - s > 1 ? std::to_string(end - s) + "×" : "") + text(list[s]), " ");
  }
  return out;
}

// Without a pipeline there is no schedule.
std::string schedule_name(const Candidate& plan) { return plan.layout.pp > 1 ? plan.schedule : ""; }

Table plans_table(const PlanAnswer& answer) {
  Table table(declared_table("plan/plans"));
  int64_t rank = 0;
  for (const Candidate& plan : answer.found.plans)
    table.add_row({++rank, int64_t{plan.layout.tp}, int64_t{plan.layout.pp}, int64_t{plan.layout.cp},
                   int64_t{plan.layout.ep}, int64_t{plan.layout.dp}, schedule_name(plan), int64_t{plan.chunks},
                   int64_t{plan.layout.micro_batch}, int64_t{plan.micro_batches}, layers_text(plan),
                   recompute_text(plan), plan.step_ns, std::llround(plan.error_ns), plan.mfu, plan.bubble,
                   answer.wish.model.sized() ? plan.peak_bytes / kGiB : kNaN, int64_t{plan.peak_rank}, plan.gap()});
  return table;
}

Table stages_table(const PlanAnswer& answer, const Candidate& plan) {
  Schedule shape;
  shape.sizes.stages = plan.layout.pp, shape.sizes.chunks = plan.chunks;
  if (const ScheduleDef* def = find_schedule(plan.schedule))
    if (const auto made = def->make({.stages = plan.layout.pp, .micro_batches = 1, .chunks = plan.chunks}))
      shape.layout = made->layout;
  return stage_bytes_table(shape, plan.plan.layers(), plan.peaks, answer.wish.rates.memory.limit);
}

Table pareto_table(const PlanAnswer& answer) {
  Table table(declared_table("plan/pareto"));
  for (const Candidate& plan : answer.found.pareto)
    table.add_row({plan.peak_bytes / kGiB, plan.step_ns, degrees_text(answer.wish, plan), schedule_name(plan),
                   int64_t{plan.chunks}, layers_text(plan), recompute_text(plan)});
  return table;
}

Table sensitivity_table(const PlanAnswer& answer) {
  Table table(declared_table("plan/sensitivity"));
  for (const Sensitivity& s : answer.found.sensitivity)
    table.add_row({s.parameter, s.elasticity, s.flips_at > 0 ? s.flips_at : kNaN});
  return table;
}

Table compare_table(const PlanAnswer& answer) {
  Table table(declared_table("plan/compare"));
  for (const memory_estimates::Estimate& estimate : answer.compared)
    for (const auto& [name, bytes] : estimate.bytes)
      table.add_row({estimate.tool, name, static_cast<int64_t>(std::llround(bytes))});
  return table;
}

}  // namespace

std::string recompute_text(const Candidate& plan) {
  const auto text = [](const Recompute& r) {
    std::string what = r.full > 0 ? std::to_string(r.full) : "";
    for (size_t k = 0; k < kModules; ++k)
      if (r.modules >> k & 1) append_item(what, kShort[k], "+");
    return what.empty() ? "0" : what;
  };
  const bool none = std::ranges::all_of(plan.plan.recompute, [](const Recompute& r) { return r == Recompute{}; });
  return none ? "" : counted<Recompute>(plan.plan.recompute, text);
}

std::string layers_text(const Candidate& plan) {
  return counted<int32_t>(plan.plan.layers(), [](const int32_t& n) { return std::to_string(n); });
}

std::string degrees_text(const Wish& wish, const Candidate& plan) {
  std::string out = "tp " + std::to_string(plan.layout.tp) + " · pp " + std::to_string(plan.layout.pp) + " · dp " +
                    std::to_string(plan.layout.dp);
  if (plan.layout.cp > 1) out += " · cp " + std::to_string(plan.layout.cp);
  if (wish.model.moe) out += " · ep " + std::to_string(plan.layout.ep);
  return out;
}

Table stage_bytes_table(const Schedule& shape, const std::vector<int32_t>& layers, const std::vector<RankPeak>& peaks,
                        double limit) {
  Table table(declared_table("plan/stages"));
  for (size_t r = 0; r < peaks.size(); ++r) {
    const RankPeak& p = peaks[r];
    std::string layers_of_rank, held;
    for (int32_t k = 0; k < shape.sizes.chunks; ++k)
      append_item(layers_of_rank, std::to_string(layers[virtual_stage(shape, static_cast<int32_t>(r), k)]), "+");
    for (const int32_t n : p.held) append_item(held, std::to_string(n), "+");
    table.add_row({static_cast<int64_t>(r), layers_of_rank, held, p.states.sum() / kGiB, p.activations / kGiB,
                   p.recompute / kGiB, p.head / kGiB, p.scratch / kGiB, p.transient / kGiB, p.other / kGiB,
                   p.sum() / kGiB, limit > 0 ? (limit - p.sum()) / kGiB : kNaN});
  }
  return table;
}

std::vector<Table> plan_tables(const PlanAnswer& answer) {
  std::vector<Table> tables;
  if (!answer.found.plans.empty()) tables.push_back(plans_table(answer));
  if (!answer.found.plans.empty() && answer.wish.model.sized())
    tables.push_back(stages_table(answer, answer.found.plans.front()));
  if (!answer.memory.empty()) tables.push_back(memory_table(answer.memory));
  if (!answer.found.pareto.empty()) tables.push_back(pareto_table(answer));
  if (!answer.found.sensitivity.empty()) tables.push_back(sensitivity_table(answer));
  if (!answer.compared.empty()) tables.push_back(compare_table(answer));
  return tables;
}

}  // namespace stageline
