// Computes how each device's time divides into computing, other work and idle time. Definitions:
// docs/analyses/temporal-breakdown.md.
#include "analyses/analysis.h"
#include "model/lost_work.h"
#include "model/statistics.h"
#include "profile/device_time.h"

namespace stageline {
namespace {

Table exact_temporal_breakdown_table(const std::vector<DeviceTime>& ranks) {
  Table table(declared_table("temporal-breakdown/temporal-breakdown"));
  for (const DeviceTime& b : ranks) {
    if (!b.any) continue;
    const auto share = [&](int64_t part) { return share_of(part, b.span_ns); };
    table.add_row({int64_t{b.rank}, b.span_ns, b.compute_ns, share(b.compute_ns), b.other_ns(), share(b.other_ns()),
                   b.exposed_communication_ns(), b.exposed_memory_ns(), b.idle_ns, share(b.idle_ns)});
  }
  return table;
}

Table hta_temporal_breakdown_table(const std::vector<DeviceTime>& ranks) {
  Table table(declared_table("temporal-breakdown/temporal-breakdown/hta"));
  for (const DeviceTime& b : ranks) {
    const double span = to_us(b.span_ns);
    const auto percent = [&](int64_t ns) { return round_to(100 * to_us(ns) / span, 2); };
    table.add_row({int64_t{b.rank}, to_us(b.idle_ns), to_us(b.compute_ns), to_us(b.other_ns()), span,
                   percent(b.idle_ns), percent(b.compute_ns), percent(b.other_ns())});
  }
  return table;
}

}  // namespace

Result<AnalysisResult> run_temporal_breakdown(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) { return device_time(*torch, rank); });
  const std::vector<bool> lacks = parts_without_kernels(*torch->trace, torch->parts);
  for (size_t k = 0; k < ranks.size(); ++k) ranks[k].any = ranks[k].any && !lacks[k];
  for (const DeviceTime& b : ranks)
    if (input.hta && !b.any)
      return make_error(ErrorCode::kBadInput, "IndexError: single positional indexer is out-of-bounds",
                        "HTA fails on a rank without device rows (rank " + std::to_string(b.rank) +
                            "); without --compat hta it is left out");
  AnalysisResult result = answer_of(*torch);
  return result.with(input.hta ? hta_temporal_breakdown_table(ranks) : exact_temporal_breakdown_table(ranks));
}

}  // namespace stageline
