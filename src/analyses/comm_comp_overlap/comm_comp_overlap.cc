// How much of the communication runs while something is computed. Definitions: docs/analyses/comm-comp-overlap.md.
#include <cmath>

#include "analyses/analysis.h"
#include "base/parallel.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

using Type = ColumnType;

struct Overlap {
  int32_t rank = 0;
  bool any = false;
  int64_t communication_ns = 0, computation_ns = 0, both_ns = 0;
  int64_t exposed_ns() const { return communication_ns - both_ns; }
};

Overlap overlap_of(const TorchRank& rank) {
  std::vector<Interval> communication, computation;
  Overlap o;
  o.rank = rank.rank;
  for (const TorchRow& row : rank.rows) {
    if (!row.on_device) continue;
    o.any = true;
    if (row.kernel == KernelClass::kCommunication) communication.push_back({row.start_ns, row.end_ns()});
    if (row.kernel == KernelClass::kComputation) computation.push_back({row.start_ns, row.end_ns()});
  }
  communication = union_of(std::move(communication));
  computation = union_of(std::move(computation));
  o.communication_ns = length_of(communication);
  o.computation_ns = length_of(computation);
  o.both_ns = shared_length(communication, computation);
  return o;
}

Table hta_comm_comp_overlap_table(const std::vector<Overlap>& ranks) {
  Table table("comm-comp-overlap", "Communication computation overlap (HTA)",
              {{"rank", "rank", Type::kInteger, ""}, {"comp_comm_overlap_pctg", "overlap %", Type::kReal, ""}});
  for (const Overlap& o : ranks)
    table.add_row({int64_t{o.rank}, round_to(100 * share_of(o.both_ns, o.communication_ns), 2)});
  return table;
}

std::vector<ColumnSpec> comm_comp_overlap_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"communication_ns", "communication", Type::kDuration, "Union of communication kernels"},
          {"computation_ns", "computing", Type::kDuration, "Union of computation kernels"},
          {"overlap_ns", "both", Type::kDuration, "Communication while something is computed"},
          {"exposed_ns", "exposed", Type::kDuration, "Communication while nothing is computed"},
          {"overlap_share", "overlapped", Type::kShare, "Of the communication; empty without communication"}};
}

Table exact_comm_comp_overlap_table(const std::vector<Overlap>& ranks) {
  Table table("comm-comp-overlap", "Communication under computation", comm_comp_overlap_columns());
  for (const Overlap& o : ranks)
    if (o.any)
      table.add_row({int64_t{o.rank}, o.communication_ns, o.computation_ns, o.both_ns, o.exposed_ns(),
                     share_of(o.both_ns, o.communication_ns)});
  return table;
}

Result<AnalysisResult> run_comm_comp_overlap(const AnalysisInput& input) {
  Result<TorchRun> torch = make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows});
  if (!torch) return std::move(torch).error();
  std::vector<Overlap> ranks(torch->parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = overlap_of(*torch_rank(*torch, torch->parts[k])); });
  AnalysisResult result;
  note_last_step(*torch, result.notes);
  result.tables.push_back(input.hta ? hta_comm_comp_overlap_table(ranks) : exact_comm_comp_overlap_table(ranks));
  return result;
}

}  // namespace

extern const Analysis comm_comp_overlap_analysis;
const Analysis comm_comp_overlap_analysis = {
    .name = "comm-comp-overlap",
    .summary = "communication hidden under computation, and exposed",
    .tables = {{"comm-comp-overlap", "one row per rank", comm_comp_overlap_columns}},
    .run = run_comm_comp_overlap,
    .needs = AnalysisNeeds::kTorch,
    .compat = "hta"};

}  // namespace stageline
