#include "analyses/cluster/cluster.h"

#include "analyses/cluster/problems.h"
#include "model/statistics.h"
#include "model/torch_facts.h"

namespace stageline {

void note_level_none(const AnalysisInput& input, Diagnostics& notes) {
  const std::vector<Part>& parts = input.trace->parts;
  const auto none = [](const Part& part) { return ascend_level(part) == "Level_none"; };
  const auto count = std::ranges::count_if(parts, none);
  if (count > 0 && !input.for_report) notes.add(problem::ascend_level_none, {}, count);
}

void note_unmatched(const Matched& matched, size_t rank_count, Diagnostics& notes) {
  if (matched.not_matched > 0) notes.add(problem::communication_not_synchronising, {}, matched.not_matched);
  if (matched.partly_seen > 0) notes.add(problem::communication_members_missing, {}, matched.partly_seen);
  if (matched.alone > 0 && rank_count > 1) notes.add(problem::communication_no_counterpart, {}, matched.alone);
}

namespace {

// Values are taken relative to the first one before they become doubles, so that durations with a large sum and small
// differences keep their deviation.
Description described(const std::vector<int64_t>& sorted) {
  std::vector<double> values;
  values.reserve(sorted.size());
  for (const int64_t ns : sorted) values.push_back(ns - sorted.front());
  Description d = describe(std::move(values));
  const double first = sorted.front();
  for (double* at : {&d.mean, &d.min, &d.p25, &d.p50, &d.p75, &d.max}) *at += first;
  return d;
}

}  // namespace

std::vector<Table::Value> with_durations(std::vector<Table::Value> keys, std::vector<int64_t>& ns, bool msprof) {
  std::ranges::sort(ns);
  const Description d = described(ns);
  const int64_t sum = sum_of(ns);
  if (msprof) {
    for (const Table::Value& value :
         {Table::Value(d.count), Table::Value(d.mean), Table::Value(d.std), Table::Value(d.min), Table::Value(d.p25),
          Table::Value(d.p50), Table::Value(d.p75), Table::Value(d.max), Table::Value(static_cast<double>(sum))})
      keys.push_back(value);
    return keys;
  }
  const auto whole = [](double value) -> int64_t { return std::isnan(value) ? kNullInteger : std::llround(value); };
  for (const int64_t value :
       {d.count, sum, whole(d.mean), whole(d.std), ns.front(), whole(d.p25), whole(d.p50), whole(d.p75), ns.back()})
    keys.emplace_back(value);
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
