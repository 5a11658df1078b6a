// How much of the communication runs while something is computed. Definitions: docs/analyses/comm-comp-overlap.md.

#include "analyses/analysis.h"
#include "analyses/comm_comp_overlap/overlap_by_kind.h"
#include "base/text.h"
#include "model/statistics.h"
#include "profile/device_time.h"

namespace stageline {
namespace {

Table hta_comm_comp_overlap_table(const std::vector<DeviceTime>& ranks) {
  Table table(declared_table("comm-comp-overlap/comm-comp-overlap/hta"));
  for (const DeviceTime& o : ranks)
    table.add_row({int64_t{o.rank}, round_to(100 * share_of(o.overlap_ns, o.communication_ns), 2)});
  return table;
}

Table exact_comm_comp_overlap_table(const std::vector<DeviceTime>& ranks) {
  Table table(declared_table("comm-comp-overlap/comm-comp-overlap"));
  for (const DeviceTime& o : ranks)
    if (o.any)
      table.add_row({int64_t{o.rank}, o.communication_ns, o.compute_ns, o.overlap_ns, o.exposed_communication_ns(),
                     share_of(o.overlap_ns, o.communication_ns)});
  return table;
}

// Reads "dp,edp;tp": sets of kinds. msprof-analyze's own by default.
std::vector<std::vector<std::string>> kind_sets(const AnalysisOptions& options) {
  std::vector<std::vector<std::string>> sets;
  const std::string all = options.text("kinds", "dp,edp;edp;dp;ep;pp;mp;tp");
  for (const std::string_view set : split(all, ';')) {
    sets.emplace_back();
    for (const std::string_view kind : split(set, ',')) sets.back().emplace_back(trim(kind));
  }
  return sets;
}

Result<AnalysisResult> run_comm_comp_overlap(const AnalysisInput& input) {
  AnalysisResult result;
  if (input.msprof) {
    TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
    result.tables.push_back(msprof_masking(*torch, kind_sets(input.options)));
    return result;
  }
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  const auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) { return device_time(*torch, rank); });
  note_last_step(*torch, result.notes);
  result.tables.push_back(input.hta ? hta_comm_comp_overlap_table(ranks) : exact_comm_comp_overlap_table(ranks));
  if (!input.hta) result.tables.push_back(overlap_by_kind(*torch));
  return result;
}

}  // namespace

extern const Analysis comm_comp_overlap_analysis = {.name = "comm-comp-overlap",
                                                    .summary = "communication hidden under computation, and exposed",
                                                    .run = run_comm_comp_overlap,
                                                    .needs = AnalysisNeeds::kTorch,
                                                    .compat = "hta,msprof"};

}  // namespace stageline
