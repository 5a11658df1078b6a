#include "cli/plan_text.h"

#include "cli/plan_tables.h"
#include "diagnosis/what_if/what_if_words.h"
#include "exporters/table_text.h"
#include "exporters/table_words.h"

namespace stageline {
namespace {

using namespace plan;

constexpr double kGiB = 1 << 30;

std::string gib(double bytes) { return fixed(bytes / kGiB, 1); }
// Rounds up, so that the bytes are enough.
std::string gib_up(double bytes) { return fixed(std::ceil(bytes / kGiB * 10) / 10, 1); }

Args shape_args(const Wish& wish, const Candidate& plan) {
  Args args;
  args.set("degrees", degrees_text(wish, plan));
  if (plan.layout.pp > 1) args.set("schedule", plan.schedule);
  if (plan.chunks > 1) args.set("chunks", int64_t{plan.chunks});
  args.count("m", int64_t{plan.micro_batches})
      .set("mbs", int64_t{plan.layout.micro_batch})
      .set("layers", layers_text(plan));
  args.set("recompute", recompute_text(plan));
  args.set("step", human_duration(static_cast<double>(plan.step_ns))).set("error", human_duration(plan.error_ns));
  args.set("peak", gib(plan.peak_bytes)).set("stage", int64_t{plan.peak_rank});
  return args;
}

// Lists the bytes of a rank in a sentence.
Text parts_text(const RankPeak& peak) {
  Args args;
  args.set("states", gib(peak.states.sum()))
      .set("activations", gib(peak.activations))
      .set("scratch", gib(peak.scratch));
  if (peak.recompute > 0) args.set("recompute", gib(peak.recompute));
  if (peak.head > 0) args.set("head", gib(peak.head));
  const Text parts = words("plan.parts", args);
  return peak.transient > 0
             ? words("plan.parts.transient", args.set("parts", parts).set("transient", gib(peak.transient)))
             : parts;
}

// What is needed at least, and the single changes with which it fits.
std::string shortfall_text(const PlanAnswer& answer, const Terminal& terminal) {
  const Shortfall& shortfall = *answer.found.shortfall;
  const MemoryOptions& memory = answer.wish.rates.memory;
  const double needed = shortfall.candidate.needed_bytes;
  const RankPeak& peak = shortfall.candidate.peaks[shortfall.rank];
  Args args = shape_args(answer.wish, shortfall.candidate);
  args.flag("complete", answer.found.complete).set("margin", gib(needed - peak.sum() - memory.reserve));
  args.set("need", gib_up(needed)).set("limit", gib(memory.limit)).set("rank", int64_t{shortfall.rank});
  args.set("parts", parts_text(peak)).set("reserve", gib(memory.reserve));
  std::string out = terminal.say("plan.short", args) + "\n";
  for (const Shortfall::Fix& fix : shortfall.fixes)
    out += terminal.say("plan.short.fix", Args().set("change", fix.change).set("need", gib_up(fix.needed))) + "\n";
  return out + terminal.say("plan.short.memory", args) + "\n";
}

// What the times of the first plan rest on, and what is known of the run that they come from.
std::string basis_text(const PlanAnswer& answer, const Terminal& terminal) {
  const Wish& wish = answer.wish;
  const Candidate& first = answer.found.plans.front();
  Args args = Args().set("hardware", wish.rates.hardware.name).set("run", answer.from);
  args.flag("unchecked", wish.model.sized() && !answer.limited).flag("unsized", !wish.model.sized());
  args.set("error", percent(first.error_ns / static_cast<double>(first.step_ns)));
  const char* const basis = !answer.from.empty() ? "plan.basis.recorded"
                            : wish.calibrated    ? "plan.basis.measured"
                                                 : "plan.basis.estimated";
  std::string out = terminal.say(basis, args) + "\n";
  for (const auto& [rank, share] : answer.slow) {
    args = Args().set("stage", int64_t{rank}).set("share", percent(share)).set("run", shell_word(answer.from));
    out += terminal.say("plan.slow", args) + "\n";
  }
  if (!answer.memory.empty()) out += std::string(trim(measured_words(answer.memory).in(terminal.chinese()))) + "\n";
  if (wish.model.sized() && !answer.sharding_given && wish.framework->sharding != Sharding::kDistributed)
    out += terminal.say("plan.sharding", Args().set("framework", std::string(wish.framework->name))) + "\n";
  return out;
}

// How much of the space was searched, and what the model leaves out.
std::string searched_text(const PlanAnswer& answer, const Terminal& terminal) {
  const Found& found = answer.found;
  Args args;
  args.count("tried", found.tried).count("layouts", found.layouts).count("rejected", found.rejected);
  args.flag("complete", found.complete).set("gap", percent(found.gap()));
  std::string out = terminal.say("plan.searched", args) + "\n";
  for (const std::string& key : answer.wish.model.notes)
    out += terminal.say("plan.not_modelled", Args().set("key", key)) + "\n";
  return out;
}

// The flags to type for the first plan: of the framework that was asked for, else of the first that can run it.
std::string typed_text(const PlanAnswer& answer, const Terminal& terminal) {
  const std::string_view asked = answer.wish.framework->name;
  for (const Framework& framework : frameworks()) {
    if (asked != "any" && framework.name != asked) continue;
    if (const auto text = emit_plan(framework.name, answer.wish, answer.found.plans.front()))
      return "\n" + terminal.say("plan.type", Args().set("framework", std::string(framework.name))) + "\n" + *text;
  }
  return "\n" + terminal.say("plan.type.none") + "\n";
}

std::string tables_text(const PlanAnswer& answer, const Terminal& terminal, bool titled) {
  std::string out;
  for (const Table& table : plan_tables(answer))
    out += "\n" + (titled ? table_title(table, terminal.chinese()) + "\n" : "") +
           format_table_text(table, terminal.table_width, terminal.colour_out, SIZE_MAX, false, 0, terminal.chinese());
  return out;
}

}  // namespace

Text plan_headline(const PlanAnswer& answer) {
  const bool fits = !answer.found.plans.empty();
  Args args = shape_args(answer.wish, fits ? answer.found.plans.front() : answer.found.shortfall->candidate);
  if (!answer.wish.model.sized()) return words("plan.best", args);
  args.set("best", words("plan.best", args));
  return words(fits ? "plan.best.peak" : "plan.best.short", args);
}

std::string plan_text(const PlanAnswer& answer, const Terminal& terminal) {
  if (!answer.found.plans.empty())
    return plan_headline(answer).in(terminal.chinese()) + "\n" + basis_text(answer, terminal) +
           searched_text(answer, terminal) + tables_text(answer, terminal, true) + typed_text(answer, terminal);
  if (answer.found.shortfall) return shortfall_text(answer, terminal) + tables_text(answer, terminal, false);
  return terminal.say("plan.none", Args().flag("tried", answer.found.tried > 0)) + "\n";
}

}  // namespace stageline
