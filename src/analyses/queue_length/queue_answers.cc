// Computes how long the queues of the streams are, in numbers and in a few hundred bins to draw. Definitions:
// docs/analyses/queue-length.md.
#include "analyses/analysis.h"
#include "model/intervals.h"
#include "profile/queue_length.h"

namespace stageline {
namespace {

Table hta_queue_length_summary_table(const TorchRun& run, const std::vector<std::vector<QueuePoint>>& ranks) {
  Table table(declared_table("queue-length-summary/queue-length-summary/hta"));
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const QueueRange& range : streams_of(ranks[k])) {
      std::vector<double> lengths;
      for (size_t i = range.begin; i < range.end; ++i) lengths.push_back(ranks[k][i].length);
      const Description d = describe(std::move(lengths));
      table.add_row({int64_t{run.ranks[run.parts[k]]}, int64_t{ranks[k][range.begin].stream},
                     static_cast<double>(d.count), d.mean, d.std, d.min, d.p25, d.p50, d.p75, d.max});
    }
  return table;
}

struct StreamSummary {
  std::string device;
  int64_t stream = 0;
  Description changes;
  TimeStatistics time, in_flight;
  std::vector<StepBin> bins;
};

struct RankSummary {
  std::vector<StreamSummary> streams;
  Diagnostics notes;
};

std::vector<StreamSummary> summaries_of(const std::vector<StreamQueue>& queues) {
  Span axis;  // one for all streams of a rank
  for (const StreamQueue& q : queues)
    if (q.in_flight.size() > 0) axis.add(q.in_flight.start_ns(), q.in_flight.end_ns());
  std::vector<StreamSummary> out;
  for (const StreamQueue& q : queues) {
    if (q.in_flight.size() == 0) continue;
    StreamSummary s{.device = q.device,
                    .stream = q.stream,
                    .changes = describe(std::vector<double>(q.waiting.value.begin(), q.waiting.value.end())),
                    .time = time_statistics(stretched(q.waiting, q.in_flight.start_ns(), q.in_flight.end_ns()), false),
                    .in_flight = time_statistics(q.in_flight, false),
                    .bins = bins_of(q.waiting, axis.start_ns, axis.end_ns, kChartBins)};
    out.push_back(std::move(s));
  }
  return out;
}

Table exact_queue_length_summary_table(const TorchRun& run, const std::vector<RankSummary>& ranks) {
  Table table(declared_table("queue-length-summary/queue-length-summary"));
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const StreamSummary& s : ranks[k].streams) {
      const Description& d = s.changes;
      const double waits = share_of(s.time.positive_ns, s.time.span_ns);
      table.add_row({int64_t{run.ranks[run.parts[k]]}, s.device, int64_t{s.stream}, s.time.span_ns, s.time.mean,
                     s.time.p50, s.time.p95, s.time.max, waits, s.in_flight.mean, s.in_flight.max, d.count, d.mean,
                     d.std, d.p25, d.p50, d.p75});
    }
  return table;
}

Table bin_table(const TorchRun& run, const std::vector<RankSummary>& ranks) {
  Table table(declared_table("queue-length-summary/queue-length-over-time"));
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const StreamSummary& s : ranks[k].streams)
      for (const StepBin& bin : s.bins)
        table.add_row({int64_t{run.ranks[run.parts[k]]}, s.device, int64_t{s.stream}, bin.start_ns, bin.dur_ns,
                       bin.mean, bin.max});
  return table;
}

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

}  // namespace

Result<AnalysisResult> run_queue_length_summary(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  AnalysisResult result = answer_of(*torch);
  if (input.hta) {
    TRY(ranks, hta_queues(*torch));
    return result.with(hta_queue_length_summary_table(*torch, *ranks));
  }
  const auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) {
    const std::vector<StreamQueue> queues = stream_queues(*torch, rank);
    RankSummary summary{summaries_of(queues), {}};
    note_queue_flaws(queues, summary.notes);
    return summary;
  });
  for (const RankSummary& rank : ranks) result.notes.merge(rank.notes);
  return result.with(exact_queue_length_summary_table(*torch, ranks), bin_table(*torch, ranks));
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

}  // namespace stageline
