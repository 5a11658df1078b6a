// Computes which schedule a run follows, how certain that is, and where the run's lists differ from it. Definitions:
// docs/analyses/schedule.md.
#include "analyses/analysis.h"
#include "analyses/schedule/problems.h"
#include "facts/pipeline_facts.h"
#include "model/pipeline_words.h"
#include "pipeline/order/recognise.h"

namespace stageline {
namespace {

Table recognition_table(const Recognition& r) {
  Table table(declared_table("schedule/recognition"));
  for (const ScheduleCandidate& c : r.candidates)
    table.add_row({c.name, c.score, c.order_score, c.equal_lists, r.lists, int64_t{c.sizes.stages},
                   int64_t{c.sizes.micro_batches}, int64_t{c.sizes.chunks},
                   c.sizes.group > 0 ? int64_t{c.sizes.group} : kNullInteger, std::string(layout_name(c.layout))});
  return table;
}

Table divergence_table(const Trace& trace, const Recognition& r) {
  Table table(in_words_of(trace, declared_table("schedule/divergence")));
  for (const Divergence& d : r.divergences) {
    const Part& part = trace.parts[d.part];
    table.add_row({int64_t{d.stage}, d.lists, int64_t{d.step}, known_integer(d.dp), int64_t{part.rank}, d.position,
                   d.expected, d.found, std::string(d.is_order ? "order" : "gap"), d.sentence});
  }
  return table;
}

}  // namespace

Result<AnalysisResult> run_schedule(const AnalysisInput& input) {
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
  result.add(recognition_table(r), divergence_table(*input.trace, r));
  // The tables then describe an order of fewer stages than the run has.
  if (const RunCoverage& coverage = coverage_of(input.run()); coverage.lacks_end())
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

}  // namespace stageline
