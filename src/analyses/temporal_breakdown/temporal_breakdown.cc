// Computes how each device's time divides into computing, other work and idle time. Definitions:
// docs/analyses/temporal-breakdown.md.
#include <cmath>

#include "analyses/analysis.h"
#include "base/parallel.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

using Type = ColumnType;

struct Breakdown {
  int32_t rank = 0;
  bool any = false;
  int64_t span_ns = 0, idle_ns = 0, compute_ns = 0;
  int64_t exposed_communication_ns = 0;  // exact mode only
  int64_t other_ns() const { return span_ns - idle_ns - compute_ns; }
  int64_t exposed_memory_ns() const { return other_ns() - exposed_communication_ns; }
};

Breakdown breakdown_of(const TorchRank& rank, int64_t zero_ns, bool hta) {
  std::vector<Interval> all, compute, both;  // `both`: computing and communicating
  for (const TorchRow& row : rank.rows) {
    if (!row.on_device) continue;
    all.push_back({row.start_ns, row.end_ns()});
    if (row.kernel == KernelClass::kComputation) compute.push_back(all.back());
    if (!hta && (row.kernel == KernelClass::kComputation || row.kernel == KernelClass::kCommunication))
      both.push_back(all.back());
  }
  Breakdown b;
  b.rank = rank.rank;
  b.any = !all.empty();
  if (!b.any) return b;
  all = union_of(std::move(all));
  b.span_ns = all.back().end - all.front().start;
  for (size_t i = 1; i < all.size() && !hta; ++i)
    if (rank.part->recorded_anew(zero_ns + all[i - 1].end, zero_ns + all[i].start))
      b.span_ns -= all[i].start - all[i - 1].end;
  b.idle_ns = b.span_ns - length_of(all);
  b.compute_ns = length_of(union_of(std::move(compute)));
  if (!hta) b.exposed_communication_ns = length_of(union_of(std::move(both))) - b.compute_ns;
  return b;
}

std::vector<ColumnSpec> temporal_breakdown_columns() {
  return {
      {"rank", "rank", Type::kInteger, "Global rank"},
      {"span_ns", "span", Type::kDuration,
       "First start to last end of device work (kernels, copies, memsets), without the time between two recordings"},
      {"compute_ns", "computing", Type::kDuration, "Union of computation kernels"},
      {"compute_share", "computing", Type::kShare, "Computing as a share of the span"},
      {"non_compute_ns", "other work", Type::kDuration, "Communication and memory work while nothing is computed"},
      {"non_compute_share", "other work", Type::kShare, "Other work as a share of the span"},
      {"exposed_communication_ns", "exposed communication", Type::kDuration, "Communication while nothing is computed"},
      {"exposed_memory_ns", "exposed copies", Type::kDuration,
       "Copies and memsets (and other work) while there is neither computation nor communication"},
      {"idle_ns", "idle", Type::kDuration, "Time without any device work, between the first start and the last end"},
      {"idle_share", "idle", Type::kShare, "Idle as a share of the span"}};
}

Table exact_temporal_breakdown_table(const std::vector<Breakdown>& ranks) {
  Table table("temporal-breakdown", "Where each device's time went", temporal_breakdown_columns());
  for (const Breakdown& b : ranks) {
    if (!b.any) continue;
    const auto share = [&](int64_t part) {
      return b.span_ns > 0 ? static_cast<double>(part) / static_cast<double>(b.span_ns) : NAN;
    };
    table.add_row({int64_t{b.rank}, b.span_ns, b.compute_ns, share(b.compute_ns), b.other_ns(), share(b.other_ns()),
                   b.exposed_communication_ns, b.exposed_memory_ns(), b.idle_ns, share(b.idle_ns)});
  }
  return table;
}

Table hta_temporal_breakdown_table(const std::vector<Breakdown>& ranks) {
  Table table("temporal-breakdown", "Temporal breakdown (HTA)",
              {{"rank", "rank", Type::kInteger, ""},
               {"idle_time(us)", "idle time", Type::kReal, ""},
               {"compute_time(us)", "compute time", Type::kReal, ""},
               {"non_compute_time(us)", "non-compute time", Type::kReal, ""},
               {"kernel_time(us)", "kernel time", Type::kReal, ""},
               {"idle_time_pctg", "idle %", Type::kReal, ""},
               {"compute_time_pctg", "compute %", Type::kReal, ""},
               {"non_compute_time_pctg", "non-compute %", Type::kReal, ""}});
  for (const Breakdown& b : ranks) {
    const double span = to_us(b.span_ns);
    const auto percent = [&](int64_t ns) { return round_to(100 * to_us(ns) / span, 2); };
    table.add_row({int64_t{b.rank}, to_us(b.idle_ns), to_us(b.compute_ns), to_us(b.other_ns()), span,
                   percent(b.idle_ns), percent(b.compute_ns), percent(b.other_ns())});
  }
  return table;
}

Result<AnalysisResult> run_temporal_breakdown(const AnalysisInput& input) {
  Result<TorchRun> torch = make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows});
  if (!torch) return std::move(torch).error();
  std::vector<Breakdown> ranks(torch->parts.size());
  parallel_for(ranks.size(), [&](size_t k) {
    ranks[k] = breakdown_of(*torch_rank(*torch, torch->parts[k]), torch->zero_ns, input.hta);
  });
  for (const Breakdown& b : ranks)
    if (input.hta && !b.any)
      return Error{ErrorCode::kBadInput,
                   "IndexError: single positional indexer is out-of-bounds",
                   {},
                   "HTA fails on a rank without device rows (rank " + std::to_string(b.rank) +
                       "); without --compat hta it is left out"};
  AnalysisResult result;
  note_last_step(*torch, result.notes);
  result.tables.push_back(input.hta ? hta_temporal_breakdown_table(ranks) : exact_temporal_breakdown_table(ranks));
  return result;
}

}  // namespace

extern const Analysis temporal_breakdown_analysis;
const Analysis temporal_breakdown_analysis = {
    .name = "temporal-breakdown",
    .summary = "computing, other work and idle time of every device",
    .tables = {{"temporal-breakdown", "one row per rank", temporal_breakdown_columns}},
    .run = run_temporal_breakdown,
    .needs = AnalysisNeeds::kTorch,
    .compat = "hta"};

}  // namespace stageline
