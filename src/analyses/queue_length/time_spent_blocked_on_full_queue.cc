// Computes how long the queue of each stream was full. Definitions: docs/analyses/queue-length.md.
#include "analyses/analysis.h"
#include "profile/queue_length.h"

namespace stageline {
namespace {

struct HtaBlocked {
  int64_t stream = 0;
  double dur_us = 0, relative = 0;
};

// Returns the time from the first start to the last start in the rank's table.
double hta_span_us(const TorchRank& rank) {
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const TorchRow& row : rank.rows) {
    first = std::min(first, row.start_ns);
    last = std::max(last, row.start_ns);
  }
  return rank.rows.empty() ? 0 : to_us(last - first);
}

// HTA selects the rows of a stream by a mask that is computed over all streams and matched by event index. When an
// index occurs twice (dropping the last step duplicates rows), the mask gets longer than the stream and selects other
// rows, or none.
Result<std::vector<HtaBlocked>> hta_blocked(const TorchRun& run, const TorchRank& rank, int64_t max) {
  TRY(found, hta_queue_points(run, rank));
  const std::vector<QueuePoint>& points = *found;
  std::multimap<uint32_t, size_t> by_index;
  const std::vector<QueueRange> ranges = streams_of(points);
  bool repeated = false;
  if (ranges.size() > 1) {
    auto indexes = mapped<uint32_t>(points, &QueuePoint::index);
    std::ranges::sort(indexes);
    repeated = std::ranges::adjacent_find(indexes) != indexes.end();
    if (repeated)
      for (size_t i = 0; i < points.size(); ++i) by_index.emplace(points[i].index, i);
  }
  std::vector<HtaBlocked> out;
  for (const QueueRange& range : ranges) {
    std::vector<size_t> rows;  // rows of the stream, counted from 0
    if (!repeated) {
      for (size_t i = range.begin; i < range.end; ++i)
        if (points[i].length >= max) rows.push_back(i - range.begin);
    } else {
      size_t at = 0;
      for (size_t i = range.begin; i < range.end; ++i)
        for (auto [it, end] = by_index.equal_range(points[i].index); it != end; ++it, ++at)
          if (points[it->second].length >= max) rows.push_back(at);
    }
    if (rows.empty()) continue;
    int64_t sum = 0;
    for (const size_t row : rows) {
      const size_t i = range.begin + row;
      if (i >= range.end)
        return make_error(ErrorCode::kBadInput, "IndexError: indices are out-of-bounds",
                          "HTA fails on several streams with repeated events (rank " + std::to_string(rank.rank) + ")");
      if (i + 1 < range.end) sum += points[i + 1].ts_ns - points[i].ts_ns;
    }
    out.push_back({points[range.begin].stream, to_us(sum), to_us(sum) / hta_span_us(rank)});
  }
  return out;
}

}  // namespace

Result<AnalysisResult> run_time_spent_blocked_on_full_queue(const AnalysisInput& input) {
  TRY(max, input.options.integer("max-queue-length", kCudaQueueLength, input.hta ? INT64_MIN : 1));
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  const size_t count = torch->parts.size();
  const auto rank_of = [&](size_t k) { return int64_t{torch->ranks[torch->parts[k]]}; };
  AnalysisResult result = answer_of(*torch);
  if (input.hta) {
    TRY(ranks, try_ranks(*torch, [&](const TorchRank& rank) { return hta_blocked(*torch, rank, *max); }));
    Table table(declared_table("time-spent-blocked-on-full-queue/time-spent-blocked-on-full-queue/hta"));
    for (size_t k = 0; k < count; ++k) {
      if ((*ranks)[k].empty()) continue;
      const HtaBlocked& last = (*ranks)[k].back();  // each stream overwrites the stream before it
      table.add_row({rank_of(k), int64_t{last.stream}, last.dur_us, last.relative});
    }
    return result.with(std::move(table));
  }
  std::vector<std::vector<FullQueue>> ranks(count);
  std::vector<Diagnostics> notes(count);
  parallel_for(count, [&](size_t k) {
    const auto held = torch_rank(*torch, torch->parts[k]);
    const TorchRank& rank = *held;
    const std::vector<StreamQueue> queues = stream_queues(*torch, rank);
    note_queue_flaws(queues, notes[k]);
    ranks[k] = full_queues(rank, queues, *max);
  });
  Table table(declared_table("time-spent-blocked-on-full-queue/time-spent-blocked-on-full-queue"));
  for (size_t k = 0; k < count; ++k) {
    result.notes.merge(notes[k]);
    for (const FullQueue& b : ranks[k])
      table.add_row({rank_of(k), b.device, int64_t{b.stream}, b.longest, b.full_ns, b.full_share()});
  }
  return result.with(std::move(table));
}

}  // namespace stageline
