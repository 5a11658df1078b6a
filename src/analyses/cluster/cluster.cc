#include "analyses/cluster/cluster.h"

#include "analyses/cluster/problems.h"
#include "model/statistics.h"
#include "model/torch_facts.h"

namespace stageline {
namespace {

// Values are taken relative to the first one before they become doubles, so that durations with a large sum and small
// differences keep their deviation.
Description described(const std::vector<int64_t>& sorted) {
  auto values = mapped<double>(sorted, [&](const int64_t ns) { return ns - sorted.front(); });
  Description d = describe(std::move(values));
  const double first = sorted.front();
  for (double* at : {&d.mean, &d.min, &d.p25, &d.p50, &d.p75, &d.max}) *at += first;
  return d;
}

}  // namespace

void note_level_none(const AnalysisInput& input, Diagnostics& notes) {
  const std::vector<Part>& parts = input.trace->parts;
  const auto none = [](const Part& part) { return ascend_level(part) == "Level_none"; };
  const auto count = std::ranges::count_if(parts, none);
  if (count > 0 && !input.for_report) notes.add(problem::ascend_level_none, {}, count);
}

void note_unmatched(const Matched& matched, size_t rank_count, Diagnostics& notes) {
  notes.add(problem::communication_not_synchronising, {}, matched.not_matched);
  notes.add(problem::communication_members_missing, {}, matched.partly_seen);
  if (matched.alone > 0 && rank_count > 1) notes.add(problem::communication_no_counterpart, {}, matched.alone);
}

std::vector<Table::Value> with_durations(std::vector<Table::Value> keys, std::vector<int64_t>& ns, bool msprof) {
  std::ranges::sort(ns);
  const Description d = described(ns);
  const int64_t sum = sum_of(ns);
  if (msprof)
    keys.insert(keys.end(), {d.count, d.mean, d.std, d.min, d.p25, d.p50, d.p75, d.max, static_cast<double>(sum)});
  else
    keys.insert(keys.end(), {d.count, sum, whole_ns(d.mean), whole_ns(d.std), ns.front(), whole_ns(d.p25),
                             whole_ns(d.p50), whole_ns(d.p75), ns.back()});
  return keys;
}

int64_t sum_of(const std::vector<int64_t>& ns) {
  return std::accumulate(ns.begin(), ns.end(), int64_t{0}, sum_or_limit);
}

double population_std(const std::vector<double>& values) {
  const double mean = mean_of(values);
  const double squares = sum_over<double>(values, [&](const double v) { return (v - mean) * (v - mean); });
  return std::sqrt(squares / values.size());
}

}  // namespace stageline
