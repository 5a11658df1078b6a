// The parts of a step of every rank, in two runs. Definitions: docs/analyses/cluster-time-diff.md.
#include "analyses/analysis.h"
#include "analyses/cluster/msprof.h"
#include "base/error_words.h"
#include "model/statistics.h"
#include "profile/cluster_times.h"

namespace stageline {
namespace {

struct StepPart {
  const char* name;
  int64_t (*ns)(const ClusterStep& step);
};
// They add up to the first.
constexpr StepPart kParts[] = {{"span", [](const ClusterStep& s) { return s.span_ns(); }},
                               {"computing", [](const ClusterStep& s) { return s.compute_ns; }},
                               {"exposed communication", [](const ClusterStep& s) { return s.exposed_ns; }},
                               {"exposed copies", [](const ClusterStep& s) { return s.exposed_memory_ns; }},
                               {"free", [](const ClusterStep& s) { return s.free_ns; }}};

struct Side {
  TorchRun run;
  std::vector<std::vector<CommunicationOp>> ops;
  std::map<int32_t, std::vector<ClusterStep>> steps;  // by rank; all work is one where a rank has no steps
};

Result<Side> side_of(const Trace& trace) {
  TRY(run, make_torch_run(trace, {.include_last_step = true}));
  Side side{std::move(*run), {}, {}};
  side.ops = all_communication_ops(side.run);
  match_collectives(side.ops);
  for (size_t k = 0; k < side.ops.size(); ++k) {
    const size_t part = side.run.parts[k];
    ClusterTimes times = cluster_times(side.run, *torch_rank(side.run, part), side.ops[k]);
    if (times.size() > 1) times.erase(-1);
    for (auto& [number, step] : times) side.steps[side.run.ranks[part]].push_back(std::move(step));
  }
  return side;
}

std::vector<double> values_of(const std::vector<ClusterStep>& steps, const StepPart& part) {
  return mapped<double>(steps, [&](const ClusterStep& step) { return static_cast<double>(part.ns(step)); });
}

Table parts_table(const Side& control, const Side& test) {
  Table table(declared_table("cluster-time-diff/cluster-time-diff"));
  for (const auto& [rank, steps] : control.steps) {
    const auto other = test.steps.find(rank);
    if (other == test.steps.end()) continue;
    for (const StepPart& part : kParts) {
      const std::vector<double> a = values_of(steps, part), b = values_of(other->second, part);
      table.add_row({int64_t{rank}, std::string(part.name), std::ssize(a), std::ssize(b), whole_ns(mean_of(a)),
                     whole_ns(mean_of(b)), whole_ns(mean_of(b) - mean_of(a)), whole_ns(sample_std(a)),
                     whole_ns(sample_std(b))});
    }
  }
  return table;
}

// ClusterTimeCompareSummary of msprof-analyze's mode cluster_time_compare_summary: rows of one rank and step number.
Table msprof_table(const Side& control, const Side& test) {
  Table table(declared_table("cluster-time-diff/cluster-time-diff", "msprof"));
  const Table base = msprof_time_summary(control.run, control.ops), own = msprof_time_summary(test.run, test.ops);
  for (size_t row = 0; row < own.row_count(); ++row)
    for (size_t other = 0; other < base.row_count(); ++other) {
      if (own.integer(row, 0) != base.integer(other, 0) || own.integer(row, 1) != base.integer(other, 1)) continue;
      std::vector<Table::Value> values = {own.integer(row, 0), own.integer(row, 1)};
      for (size_t c = 2; c < own.columns().size(); ++c)
        for (const double value : {own.real(row, c), base.real(other, c), own.real(row, c) - base.real(other, c)})
          values.emplace_back(value);
      table.add_row(std::move(values));
    }
  return table;
}

}  // namespace

Result<AnalysisResult> run_cluster_time_diff(const AnalysisInput& input) {
  TRY(control, side_of(*input.control));
  TRY(test, side_of(*input.test));
  return AnalysisResult{}.with(input.msprof ? msprof_table(*control, *test) : parts_table(*control, *test));
}

}  // namespace stageline
