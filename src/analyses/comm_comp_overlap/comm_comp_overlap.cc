// How much of the communication runs while something is computed. Definitions: docs/analyses/comm-comp-overlap.md.

#include "analyses/analysis.h"
#include "model/statistics.h"
#include "profile/device_time.h"

namespace stageline {
namespace {

Table hta_comm_comp_overlap_table(const std::vector<DeviceTime>& ranks) {
  Table table("comm-comp-overlap", "Communication computation overlap (HTA)",
              {{"rank", "rank", Type::kInteger, ""}, {"comp_comm_overlap_pctg", "overlap %", Type::kReal, ""}});
  for (const DeviceTime& o : ranks)
    table.add_row({int64_t{o.rank}, round_to(100 * share_of(o.overlap_ns, o.communication_ns), 2)});
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

Table exact_comm_comp_overlap_table(const std::vector<DeviceTime>& ranks) {
  Table table("comm-comp-overlap", "Communication under computation", comm_comp_overlap_columns());
  for (const DeviceTime& o : ranks)
    if (o.any)
      table.add_row({int64_t{o.rank}, o.communication_ns, o.compute_ns, o.overlap_ns, o.exposed_communication_ns(),
                     share_of(o.overlap_ns, o.communication_ns)});
  return table;
}

Result<AnalysisResult> run_comm_comp_overlap(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  const auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) { return device_time(*torch, rank); });
  AnalysisResult result;
  note_last_step(*torch, result.notes);
  result.tables.push_back(input.hta ? hta_comm_comp_overlap_table(ranks) : exact_comm_comp_overlap_table(ranks));
  return result;
}

}  // namespace

extern const Analysis comm_comp_overlap_analysis = {
    .name = "comm-comp-overlap",
    .summary = "communication hidden under computation, and exposed",
    .tables = {{"comm-comp-overlap", "one row per rank", comm_comp_overlap_columns}},
    .run = run_comm_comp_overlap,
    .needs = AnalysisNeeds::kTorch,
    .compat = "hta"};

}  // namespace stageline
