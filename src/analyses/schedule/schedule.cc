// Computes which schedule a run follows, how certain that is, and where the run's lists differ from it. Definitions:
// docs/analyses/schedule.md.
#include "analyses/analysis.h"
#include "analyses/schedule/problems.h"
#include "base/text.h"
#include "facts/pipeline_facts.h"
#include "model/pipeline_words.h"
#include "pipeline/order/recognise.h"

namespace stageline {
namespace {

std::vector<ColumnSpec> recognition_columns() {
  return {{"schedule", "schedule", Type::kText, "Name, as stageline help schedules has it"},
          {"score", "score", Type::kShare,
           "Mean over lists of 1 − edit distance ÷ the longer list's length, of forwards and backwards"},
          {"order_score", "with W", Type::kShare,
           "The same with weight gradients, kinds of backward (B or I) and overlaps: decides between equal scores"},
          {"equal_lists", "equal lists", Type::kInteger,
           "Lists (step, replica, rank) whose forwards and backwards are exactly the schedule's"},
          {"lists", "lists", Type::kInteger, "Lists in the run"},
          {"stages", "stages", Type::kInteger, "Ranks of one pipeline"},
          {"micro_batches", "micro-batches", Type::kInteger, "Micro-batches of most steps"},
          {"chunks", "chunks", Type::kInteger, "Chunks a rank"},
          {"group", "group", Type::kInteger, "Micro-batches that take turns on a chunk, of interleaved schedules"},
          {"layout", "layout", Type::kText, "How chunks lie on the ranks: loop, v or bidirectional"}};
}

Table recognition_table(const Recognition& r) {
  Table table("recognition", "Schedules, nearest first", recognition_columns());
  for (const ScheduleCandidate& c : r.candidates)
    table.add_row({c.name, c.score, c.order_score, c.equal_lists, r.lists, int64_t{c.sizes.stages},
                   int64_t{c.sizes.micro_batches}, int64_t{c.sizes.chunks},
                   c.sizes.group > 0 ? int64_t{c.sizes.group} : kNullInteger, std::string(layout_name(c.layout))});
  return table;
}

std::vector<ColumnSpec> divergence_columns() {
  return {
      {"stage", "stage", Type::kInteger, "Pipeline stage"},
      {"lists", "lists", Type::kInteger, "Lists that leave it here in this way"},
      {"step", "step", Type::kInteger, "The first of them: step"},
      kPipelineColumn,
      {"rank", "rank", Type::kInteger, "Its global rank"},
      {"position", "place", Type::kInteger, "Place among the forwards and backwards of the list, from 0"},
      {"expected", "expected", Type::kText, "What the schedule has there; nothing: it has ended"},
      {"found", "found", Type::kText, "What the run has there; nothing: it has ended"},
      {"kind", "kind", Type::kText, "order: both are there, the other way round; gap: something is missing or more"},
      {"sentence", "the rank", Type::kText, "In words"}};
}

Table divergence_table(const Trace& trace, const Recognition& r) {
  Table table("divergence", "Where lists first leave the nearest schedule", in_words_of(trace, divergence_columns()));
  for (const Divergence& d : r.divergences) {
    const Part& part = trace.parts[d.part];
    table.add_row({int64_t{d.stage}, d.lists, int64_t{d.step}, known_integer(d.dp), int64_t{part.rank}, d.position,
                   d.expected, d.found, std::string(d.is_order ? "order" : "gap"), d.sentence});
  }
  return table;
}

Result<AnalysisResult> run_schedule_analysis(const AnalysisInput& input) {
  const Recognition& r = theory_of(input.run()).recognition;
  if (r.candidates.empty())
    return make_error(
        ErrorCode::kBadInput,
        r.lists == 0 ? "no step holds a forward or backward cell; there is no schedule to recognise"
        : extent_of(*input.trace).micro_batch_count == 0
            ? "forwards and backwards have no micro-batches, so their order cannot be compared with a schedule"
            : "no schedule has these sizes (4096 stages, 65 536 micro-batches and 64 chunks at most)",
        "stageline info says what was read");
  AnalysisResult result;
  result.tables.push_back(recognition_table(r));
  result.tables.push_back(divergence_table(*input.trace, r));
  // The tables then describe an order of fewer stages than the run has.
  if (const RunCoverage& coverage = coverage_of(input.run()); coverage.by_warm_up())
    coverage.note("schedule", result.notes);
  std::string apart;  // schedules that differ from the best one only in weight gradients and kinds of backward
  for (const ScheduleCandidate& c : r.candidates)
    if (&c != &r.best() && c.score == r.best().score && c.order_score < r.best().order_score)
      append_item(apart, c.name);
  if (r.recognised && !apart.empty())
    result.notes.add(problem::schedule_with_w, Args().set("apart", apart).set("schedule", r.best().name));
  if (const std::string near = runner_up_text(r); !near.empty())
    result.notes.add(problem::schedule_near_tie, Args().set("near", near).set("schedule", r.best().name));
  if (!r.recognised) result.notes.add(problem::schedule_not_recognised, Args().set("recognition", recognition_text(r)));
  if (r.renumbered) result.notes.add(problem::schedule_renumbered);
  if (r.recognised && r.own_labels && !r.renumbered)
    result.notes.add(problem::schedule_labels,
                     Args().set("first", int64_t{r.lowest_label}).set("last", int64_t{r.highest_label}));
  std::string others;
  for (const std::string& name : r.same_as) append_item(others, name);
  if (r.recognised && !others.empty())
    result.notes.add(problem::schedule_ambiguous, Args().set("schedule", r.best().name).set("others", others));
  return result;
}

}  // namespace

extern const Analysis schedule_analysis = {
    .name = "schedule",
    .summary = "which pipeline schedule the run follows, how sure that is, and where its order deviates from it",
    .tables = {{"recognition", "one row per schedule that was compared, nearest first", recognition_columns},
               {"divergence", "one row per place where lists first leave the nearest one", divergence_columns}},
    .run = run_schedule_analysis};

}  // namespace stageline
