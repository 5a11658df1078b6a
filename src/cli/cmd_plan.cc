#include "cli/commands.h"
#include "cli/paths.h"
#include "cli/picture_flags.h"
#include "cli/plan_json.h"
#include "cli/plan_question.h"
#include "cli/plan_tables.h"
#include "cli/plan_text.h"
#include "exporters/chart/plan_panels.h"
#include "exporters/table_text.h"
#include "pipeline/cells/link_cells.h"
#include "server/page/page_file.h"

namespace stageline {
namespace {

using plan::Candidate, plan::PlanProblem;

// The step of a plan as a run of one replica.
Trace run_of(const PlanProblem& problem, const std::vector<std::vector<ReplayedCell>>& times) {
  Trace trace;
  trace.format = "simulated";
  trace.pipeline_stages = problem.ranks();
  trace.clock = ClockState::kShared;
  for (int32_t r = 0; r < problem.ranks(); ++r) {
    Part part;
    part.rank = part.device = part.stage = r, part.dp = 0;
    trace.parts.push_back(std::move(part));
    for (size_t i = 0; i < times[r].size(); ++i)
      for (const Action& action : problem.schedule.ranks[r][i].actions())
        trace.cells.add(
            {0, r, action.kind, action.chunk, action.micro_batch, times[r][i].start_ns, times[r][i].end_ns, kNoSlice});
  }
  trace.cells.sort();
  link_cells(trace);
  return trace;
}

// The bytes of a rank. The activations of its chunks are divided by the micro-batches that each keeps.
PlanPicture::Bar bar_of(const PlanProblem& problem, const Candidate& candidate, int32_t rank) {
  using enum PlanPicture::Part;
  const plan::RankPeak& peak = candidate.peaks[rank];
  PlanPicture::Bar bar;
  const auto add = [&](PlanPicture::Part part, double bytes, int32_t chunk = 0) {
    bar.pieces.push_back({part, chunk, bytes});
  };
  add(kParameters, peak.states.parameters), add(kGradients, peak.states.gradients);
  add(kOptimizer, peak.states.optimizer);
  std::vector<double> kept(peak.held.size());
  double sum = 0;
  for (size_t k = 0; k < kept.size(); ++k) {
    const int32_t stage = virtual_stage(problem.schedule, rank, static_cast<int32_t>(k));
    kept[k] = peak.held[k] * plan::chunk_bytes(problem, stage, candidate.plan.bounds[stage],
                                               candidate.plan.bounds[stage + 1], candidate.plan.recompute[stage])
                                 .act;
    sum += kept[k];
  }
  // A run that measured less than the model says has held fewer activations.
  const double activations = std::max(0.0, peak.activations + std::min(0.0, peak.other));
  for (size_t k = 0; k < kept.size(); ++k)
    add(kActivations, sum > 0 ? activations * kept[k] / sum : 0, static_cast<int32_t>(k));
  add(kRecompute, peak.recompute), add(kHead, peak.head), add(kScratch, peak.scratch);
  add(kTransient, peak.transient), add(kOther, std::max(0.0, peak.other));
  add(kReserve, plan::needed(peak, problem.bar, problem.memory) - peak.sum());
  bar.low = peak.sum() * problem.bar.low, bar.high = peak.sum() * problem.bar.high;
  return bar;
}

// The kind of picture or page that --to or the name of --output asks for; "": none.
std::string picture_kind(const Arguments& arguments) {
  const std::string extension = file_extension(arguments.get("output"));
  const bool named = extension == "svg" || extension == "png" || extension == "pdf" || extension == "html";
  return arguments.get("to", named ? extension : "");
}

// Draws the first plan or, where nothing fits, the one that misses least. Expects one of them. Errors: kUsage for
// --width; those of export_run().
Status draw_plan(const PlanAnswer& answer, const Arguments& arguments, const Terminal& terminal) {
  const Candidate& c = answer.found.plans.empty() ? answer.found.shortfall->candidate : answer.found.plans.front();
  TRY(problem, plan::problem_of(answer.wish, c.layout, c.schedule, c.chunks, c.micro_batches));
  TRY(times, plan::cells_of(*problem, plan::stage_times(*problem, plan::LayerSums(*problem), c.plan)));
  PlanPicture picture;
  picture.json = plan_json(answer);
  picture.chunks = c.chunks, picture.decides = c.peak_rank, picture.limit = answer.wish.rates.memory.limit;
  for (int32_t r = 0; answer.wish.model.sized() && r < problem->ranks(); ++r)
    picture.bars.push_back(bar_of(*problem, c, r));
  for (const Candidate& point : answer.found.pareto)
    picture.front.push_back({point.peak_bytes, point.step_ns, point.step_ns == c.step_ns});
  TRY(options, picture_options(arguments, terminal.lang, plan_headline(answer).in(terminal.chinese())));
  options->ghosts = Ghosts::kOff;  // a plan is its own theory
  options->plan = &picture;
  const Trace run = run_of(*problem, *times);
  Diagnostics notes;
  return export_run(std::make_shared<const Run>(run), notes, arguments.get("output", "-"), picture_kind(arguments),
                    *options, {});
}

}  // namespace

Result<int> run_plan(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  const std::string output = arguments.get("output", "-");
  TRY_OK(check_writable(output, arguments.operands));
  const bool draws = !picture_kind(arguments).empty();
  if (draws && (arguments.has("json") || arguments.has("format") || arguments.has("emit")))
    return make_error(ErrorCode::kUsage, "a picture has no --format and no --emit", "name the file for what is in it");
  Arguments asked = arguments;
  if (draws) asked.set("pareto", "");
  TRY(answer, answer_plan(asked, *terminal));
  if (draws && (!answer->found.plans.empty() || answer->found.shortfall)) {
    TRY_OK(draw_plan(*answer, arguments, *terminal));
    note(*terminal, output + "  " + plan_headline(*answer).in(terminal->chinese()));
    return answer->found.plans.empty() ? kExitFinding : kExitGood;
  }
  if (draws) return make_error(ErrorCode::kUnavailable, "there is no plan to draw: no layout of these devices fits");
  std::string text;
  if (arguments.has("emit") && !answer->found.plans.empty()) {
    TRY_OK(take(plan::emit_plan(arguments.get("emit"), answer->wish, answer->found.plans.front()), text));
  } else if (format == "json") {
    text = plan_json(*answer);
  } else if (format == "csv") {
    const std::vector<Table> tables = plan_tables(*answer);
    text = format_table_csv(answer->found.plans.empty() ? Table(declared_table("plan/plans")) : tables[0]);
  } else {
    text = terminal_text(plan_text(*answer, *terminal), true);
  }
  TRY(out, open_output(output, arguments.operands));
  out->write(text);
  TRY_OK(out->commit());
  return answer->found.plans.empty() ? kExitFinding : kExitGood;
}

}  // namespace stageline
