// Every change of the number of launched operations that wait on a stream. Definitions:
// docs/analyses/queue-length.md.
#include "analyses/analysis.h"
#include "profile/queue_length.h"

namespace stageline {
namespace {

Table hta_queue_length_time_series_table(const TorchRun& run, const std::vector<std::vector<QueuePoint>>& ranks) {
  Table table(declared_table("queue-length-time-series/queue-length-time-series/hta"));
  for (size_t k = 0; k < ranks.size(); ++k) {
    const Part& part = run.trace->parts[run.parts[k]];
    for (const QueuePoint& p : ranks[k])
      table.add_row({int64_t{run.ranks[run.parts[k]]}, int64_t{p.index}, to_us(p.ts_ns), part.lanes[p.lane].pid,
                     part.lanes[p.lane].tid, int64_t{p.stream}, p.length});
  }
  return table;
}

Table exact_queue_length_time_series_table(const TorchRun& run, const std::vector<std::vector<StreamQueue>>& ranks) {
  Table table(declared_table("queue-length-time-series/queue-length-time-series"));
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const StreamQueue& q : ranks[k])
      for (size_t i = 0; i < q.waiting.size(); ++i)
        table.add_row(
            {int64_t{run.ranks[run.parts[k]]}, q.device, int64_t{q.stream}, q.waiting.time_ns[i], q.waiting.value[i]});
  return table;
}

Result<AnalysisResult> run_queue_length_time_series(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  AnalysisResult result = answer_of(*torch);
  if (input.hta) {
    TRY(ranks, hta_queues(*torch));
    return result.with(hta_queue_length_time_series_table(*torch, *ranks));
  }
  const auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) { return stream_queues(*torch, rank); });
  for (const auto& queues : ranks) note_queue_flaws(queues, result.notes);
  return result.with(exact_queue_length_time_series_table(*torch, ranks));
}

}  // namespace

extern const Analysis queue_length_time_series_analysis = {
    .run = run_queue_length_time_series, .needs = AnalysisNeeds::kComputing, .compat = "hta", .in_report = false};

}  // namespace stageline
