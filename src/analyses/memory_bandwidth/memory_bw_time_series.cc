// Every change of the bandwidth of copies and memsets. Definitions: docs/analyses/memory-bandwidth.md.
#include "analyses/analysis.h"
#include "profile/memory_bandwidth.h"

namespace stageline {
namespace {

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

}  // namespace

extern const Analysis memory_bw_time_series_analysis = {
    .run = run_memory_bw_time_series, .needs = AnalysisNeeds::kTorch, .compat = "hta", .in_report = false};

}  // namespace stageline
