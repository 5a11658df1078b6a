// Ranges that users marked in their code (mstx; annotations in other profiles): their time on the host and on the
// device. Definitions: docs/analyses/mstx-sum.md.
#include "analyses/cluster/cluster.h"

namespace stageline {
namespace {

struct Key {
  int32_t step = -1;
  StringId name = 0, domain = 0;
  auto tied() const { return std::tie(step, name, domain); }
  bool operator<(const Key& other) const { return tied() < other.tied(); }
};
struct Times {
  std::vector<int64_t> host, device;
};
struct RankAnswer {
  int32_t rank = 0;
  std::map<Key, Times> ranges;
};

RankAnswer answer_for(const TorchRank& rank) {
  RankAnswer answer;
  answer.rank = rank.rank;
  for (const TorchRow& row : rank.rows) {
    if (row.category != Category::kUserAnnotation) continue;
    Key key{row.iteration, row.name, 0};
    if (const RangeFact* range = fact_of(rank.part->ranges, row.slice)) key.domain = range->domain;
    Times& times = answer.ranges[key];
    times.host.push_back(row.dur_ns);
    if (row.partner < 0) continue;
    const TorchRow& there = rank.rows[row.partner];
    if (there.category == Category::kGpuAnnotation) times.device.push_back(there.dur_ns);
  }
  return answer;
}

Table table_of(const TorchRun& run, const std::vector<RankAnswer>& ranks, bool by_step, bool device) {
  struct Line {
    std::vector<int64_t> ns;
    int64_t sum = 0, min = INT64_MAX, longest = INT64_MIN, min_rank = 0, longest_rank = 0;
  };
  std::map<std::tuple<int64_t, std::string_view, std::string_view>, Line> lines;
  for (const RankAnswer& rank : ranks)
    for (const auto& [key, times] : rank.ranges) {
      const std::vector<int64_t>& ns = device ? times.device : times.host;
      if (ns.empty()) continue;
      Line& line =
          lines[{by_step ? key.step : rank.rank, run.trace->names.text(key.name), run.trace->names.text(key.domain)}];
      for (const int64_t value : ns) {
        if (value < line.min) std::tie(line.min, line.min_rank) = std::pair(value, int64_t{rank.rank});
        if (value > line.longest) std::tie(line.longest, line.longest_rank) = std::pair(value, int64_t{rank.rank});
      }
      line.ns.insert(line.ns.end(), ns.begin(), ns.end());
      line.sum += sum_of(ns);
    }
  std::vector<decltype(lines)::iterator> order;
  for (auto it = lines.begin(); it != lines.end(); ++it) order.push_back(it);
  sort_stably(order, [](const auto& a, const auto& b) {
    const auto first = [](const auto& x) { return std::get<0>(x->first); };
    return first(a) != first(b) ? first(a) < first(b) : a->second.sum > b->second.sum;
  });
  Table table(declared_table(std::string("mstx-sum/mstx-") + (device ? "device" : "host") + (by_step ? "" : "-ranks")));
  for (const auto& it : order) {
    const auto& [first, name, domain] = it->first;
    Line& line = it->second;
    std::vector<Table::Value> values = {by_step && first < 0 ? kNullInteger : first, std::string(name),
                                        std::string(domain)};
    values = with_durations(std::move(values), line.ns, false);
    if (by_step) {
      values.emplace_back(line.min_rank);
      values.emplace_back(line.longest_rank);
    }
    table.add_row(std::move(values));
  }
  return table;
}

}  // namespace

Result<AnalysisResult> run_mstx_sum(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  const auto ranks = ask_ranks(*torch, answer_for);
  AnalysisResult result;
  for (const bool by_step : {true, false})
    for (const bool device : {false, true}) result.tables.push_back(table_of(*torch, ranks, by_step, device));
  return result;
}

}  // namespace stageline
