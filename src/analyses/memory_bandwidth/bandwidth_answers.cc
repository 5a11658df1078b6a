// Bandwidth of copies and memsets in numbers, and in a few hundred bins to draw. Definitions:
// docs/analyses/memory-bandwidth.md.
#include "analyses/analysis.h"
#include "model/intervals.h"
#include "profile/memory_bandwidth.h"

namespace stageline {
namespace {

Table hta_memory_bw_summary_table(const TorchRun& run, const std::vector<std::vector<BandwidthPoint>>& ranks) {
  Table table(declared_table("memory-bw-summary/memory-bw-summary/hta"));
  for (size_t k = 0; k < ranks.size(); ++k) {
    const std::vector<BandwidthPoint>& points = ranks[k];
    std::vector<double> values;
    for (size_t i = 0; i < points.size(); ++i) {
      if (points[i].gbps > 0) values.push_back(points[i].gbps);
      if (i + 1 < points.size() && points[i + 1].label == points[i].label) continue;
      if (values.empty()) continue;
      const Description d = describe(std::move(values));
      values = {};
      table.add_row({int64_t{run.ranks[run.parts[k]]}, std::string(points[i].label), static_cast<double>(d.count),
                     d.mean, d.std, d.min, d.p25, d.p50, d.p75, d.max});
    }
  }
  return table;
}

struct Copies {
  CopyBandwidth total;
  TimeStatistics time;  // while copying
  Description points;
  std::vector<StepBin> bins;
};

struct RankSummary {
  std::vector<Copies> kinds;
  Diagnostics notes;
};

std::vector<Copies> copies_of(const TorchRank& rank, std::vector<CopyBandwidth> bandwidths) {
  Span axis;  // one for all kinds of a rank: that of its device work
  for (const TorchRow& row : rank.rows)
    if (row.on_device) axis.add(row.start_ns, row.end_ns());
  std::vector<Copies> out;
  for (CopyBandwidth& b : bandwidths) {
    Copies c;
    c.time = time_statistics(b.rate, true);
    std::vector<double> positive;
    for (const int64_t value : b.rate.value)
      if (value > 0) positive.push_back(gigabytes_per_second(value));
    c.points = describe(std::move(positive));
    c.bins = bins_of(b.rate, axis.start_ns, axis.end_ns, kChartBins);
    b.rate = {};
    c.total = std::move(b);
    out.push_back(std::move(c));
  }
  return out;
}

Table exact_memory_bw_summary_table(const TorchRun& run, const std::vector<RankSummary>& ranks) {
  Table table(declared_table("memory-bw-summary/memory-bw-summary"));
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const Copies& c : ranks[k].kinds) {
      const Description& d = c.points;
      table.add_row({int64_t{run.ranks[run.parts[k]]}, c.total.label, c.total.copies, c.total.bytes, c.time.positive_ns,
                     gigabytes_per_second(c.time.mean), gigabytes_per_second(c.time.p50),
                     gigabytes_per_second(c.time.p95), gigabytes_per_second(c.time.max), d.count, d.mean, d.std, d.p25,
                     d.p50, d.p75});
    }
  return table;
}

Table bin_table(const TorchRun& run, const std::vector<RankSummary>& ranks) {
  Table table(declared_table("memory-bw-summary/memory-bw-over-time"));
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const Copies& c : ranks[k].kinds)
      for (const StepBin& bin : c.bins)
        table.add_row({int64_t{run.ranks[run.parts[k]]}, c.total.label, bin.start_ns, bin.dur_ns,
                       gigabytes_per_second(bin.mean), gigabytes_per_second(bin.max)});
  return table;
}

}  // namespace

Result<AnalysisResult> run_memory_bw_summary(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  AnalysisResult result = answer_of(*torch);
  if (input.hta) return result.with(hta_memory_bw_summary_table(*torch, hta_bandwidths(*torch)));
  const auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) {
    std::vector<CopyBandwidth> copies = copy_bandwidths(*torch, rank);
    RankSummary summary;
    note_copy_flaws(copies, summary.notes);
    summary.kinds = copies_of(rank, std::move(copies));
    return summary;
  });
  for (const RankSummary& rank : ranks) result.notes.merge(rank.notes);
  return result.with(exact_memory_bw_summary_table(*torch, ranks), bin_table(*torch, ranks));
}

Result<AnalysisResult> run_memory_bw_time_series(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  AnalysisResult result = answer_of(*torch);
  const auto part_of = [&](size_t k) -> const Part& { return torch->trace->parts[torch->parts[k]]; };
  if (input.hta) {
    const std::vector<std::vector<BandwidthPoint>> ranks = hta_bandwidths(*torch);
    Table table(declared_table("memory-bw-time-series/memory-bw-time-series/hta"));
    for (size_t k = 0; k < ranks.size(); ++k)
      for (const BandwidthPoint& p : ranks[k])
        table.add_row({int64_t{part_of(k).rank}, int64_t{p.index}, to_us(p.ts_ns), part_of(k).lanes[p.lane].pid,
                       std::string(p.label), p.gbps});
    return result.with(std::move(table));
  }
  const auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) { return copy_bandwidths(*torch, rank); });
  Table table(declared_table("memory-bw-time-series/memory-bw-time-series"));
  for (size_t k = 0; k < ranks.size(); ++k) {
    note_copy_flaws(ranks[k], result.notes);
    for (const CopyBandwidth& c : ranks[k])
      for (size_t i = 0; i < c.rate.size(); ++i)
        table.add_row({int64_t{part_of(k).rank}, c.label, c.rate.time_ns[i], gigabytes_per_second(c.rate.value[i])});
  }
  return result.with(std::move(table));
}

}  // namespace stageline
