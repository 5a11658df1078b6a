// Calls of the runtime by name: how often, how long, on which rank. Definitions: docs/analyses/cann-api-sum.md.
#include "analyses/cluster/cluster.h"
#include "model/statistics.h"

namespace stageline {
namespace {

struct RankAnswer {
  int32_t rank = 0;
  std::map<std::pair<StringId, uint8_t>, std::vector<int64_t>> calls;  // for each name and category
};

RankAnswer answer_for(const TorchRank& rank, bool msprof) {
  RankAnswer answer;
  answer.rank = rank.rank;
  for (const TorchRow& row : rank.rows)
    if (is_launch_call(row.category))
      answer.calls[{row.name, msprof ? uint8_t{0} : rank.part->slices.category_id[row.slice]}].push_back(row.dur_ns);
  return answer;
}

Table exact_cann_api_sum_table(const TorchRun& run, std::vector<RankAnswer>& ranks, bool by_rank) {
  Table table(declared_table(by_rank ? "cann-api-sum/cann-api-ranks" : "cann-api-sum/cann-api"));
  struct Line {
    std::vector<int64_t> ns;
    int64_t sum = 0, min = INT64_MAX, max = INT64_MIN, min_rank = 0, max_rank = 0;
  };
  std::map<std::tuple<int64_t, std::string_view, std::string_view>, Line> lines;
  std::map<int64_t, int64_t> whole;
  for (const RankAnswer& rank : ranks)
    for (const auto& [key, ns] : rank.calls) {
      const int64_t of = by_rank ? rank.rank : 0;
      Line& line = lines[{of, run.trace->names.text(key.first), run.trace->categories[key.second].text}];
      for (const int64_t value : ns) {
        if (value < line.min) std::tie(line.min, line.min_rank) = std::pair(value, int64_t{rank.rank});
        if (value > line.max) std::tie(line.max, line.max_rank) = std::pair(value, int64_t{rank.rank});
      }
      line.ns.insert(line.ns.end(), ns.begin(), ns.end());
      line.sum += sum_of(ns);
      whole[of] += sum_of(ns);
    }
  std::vector<decltype(lines)::iterator> order;
  for (auto it = lines.begin(); it != lines.end(); ++it) order.push_back(it);
  sort_stably(order, {}, [](const auto& it) { return std::pair(std::get<0>(it->first), -it->second.sum); });
  for (const auto& it : order) {
    const auto& [rank, name, category] = it->first;
    Line& line = it->second;
    std::vector<Table::Value> values = {std::string(name), std::string(category), share_of(line.sum, whole[rank])};
    if (by_rank) values.emplace(values.begin(), rank);
    values = with_durations(std::move(values), line.ns, false);
    if (!by_rank) {
      values.emplace_back(line.min_rank);
      values.emplace_back(line.max_rank);
    }
    table.add_row(std::move(values));
  }
  return table;
}

// The figures of msprof-analyze: right for one rank but for a digit; over ranks made of the ranks' rounded figures.
struct Figures {
  double share = 0, sum = 0, average = 0, min = 0, q1 = 0, median = 0, q3 = 0, max = 0, std = 0;
  int64_t count = 0;
};

// Returns msprof-analyze's aggregates, which it computes in SQL: numpy's quartiles, the deviation of the population,
// and values rounded to one digit.
Figures figures_of(const std::vector<int64_t>& ns, double whole) {
  std::vector<double> values(ns.begin(), ns.end());
  std::ranges::sort(values);
  const Description d = describe(values);
  const auto round1 = [](double v) { return round_exactly(v, 1); };
  Figures f{.sum = static_cast<double>(sum_of(ns)), .count = d.count};
  f.share = round_exactly(whole > 0 ? f.sum * 100.0 / whole : 0, 2);
  f.average = round1(f.sum / ns.size());
  f.min = d.min;
  f.max = d.max;
  f.q1 = round1(d.p25);
  f.median = round1(d.p50);
  f.q3 = round1(d.p75);
  f.std = round1(population_std(values));
  return f;
}

// The calls of one name over all ranks.
struct Line {
  std::string name;
  Figures figures;
  std::string min_ranks, max_ranks;
};

// Returns the figures of a name as msprof-analyze makes them from those of each rank: its median is the median of the
// medians, and its quartiles are the outermost ones.
Line line_of(const std::string& name, const std::vector<std::pair<int64_t, Figures>>& ranks, double whole) {
  Line line{name, {}, "", ""};
  Figures& f = line.figures;
  f.min = f.q1 = INFINITY;
  std::vector<double> medians;
  for (const auto& [rank, one] : ranks) {
    f.sum += one.sum;
    f.count += one.count;
    f.q1 = std::min(f.q1, one.q1);
    f.q3 = std::max(f.q3, one.q3);
    f.min = std::min(f.min, one.min);
    f.max = std::max(f.max, one.max);
    medians.push_back(one.median);
  }
  f.average = f.sum / f.count;
  std::ranges::sort(medians);
  f.median = quantile(medians, 0.5);
  double squares = 0;
  for (const auto& [rank, one] : ranks) {
    squares += (one.count - 1) * one.std * one.std + one.count * (one.average - f.average) * (one.average - f.average);
    if (one.min == f.min) append_item(line.min_ranks, std::to_string(rank));
    if (one.max == f.max) append_item(line.max_ranks, std::to_string(rank));
  }
  f.std = ranks.size() == 1 ? ranks[0].second.std : f.count > 1 ? std::sqrt(squares / (f.count - 1)) : 0;
  f.share = whole > 0 ? f.sum / whole * 100.0 : 0;
  for (double* v : {&f.share, &f.average, &f.q1, &f.median, &f.q3, &f.std}) *v = round_to(*v, 1);
  return line;
}

void add_line(Table& table, const std::string& name, const Figures& f, std::initializer_list<Table::Value> ranks) {
  std::vector<Table::Value> values = {name, f.share,  f.sum, f.count, f.average, f.min,
                                      f.q1, f.median, f.q3,  f.max,   f.std};
  values.insert(values.end(), ranks);
  table.add_row(std::move(values));
}

std::vector<Table> msprof_tables(const TorchRun& run, const std::vector<RankAnswer>& ranks) {
  Table by_rank(declared_table("cann-api-sum/cann-api-ranks/msprof")),
      all(declared_table("cann-api-sum/cann-api/msprof"));
  std::map<std::string, std::vector<std::pair<int64_t, Figures>>> by_name;
  for (const RankAnswer& rank : ranks) {
    double whole = sum_over<double>(rank.calls, [&](const auto& entry) { return sum_of(entry.second); });
    std::vector<std::pair<std::string, Figures>> names;
    for (const auto& [key, ns] : rank.calls)
      names.emplace_back(run.trace->names.text(key.first), figures_of(ns, whole));
    sort_stably(names, {}, [](const auto& one) { return std::pair(-one.second.share, std::string_view(one.first)); });
    for (const auto& [name, f] : names) {
      add_line(by_rank, name, f, {int64_t{rank.rank}});
      by_name[name].emplace_back(rank.rank, f);
    }
  }
  double whole = 0;
  for (const auto& [name, of_ranks] : by_name)
    for (const auto& [rank, f] : of_ranks) whole += f.sum;
  std::vector<Line> lines;
  for (const auto& [name, of_ranks] : by_name) lines.push_back(line_of(name, of_ranks, whole));
  sort_stably(lines, std::ranges::greater(), [](const Line& line) { return line.figures.sum; });
  for (const Line& line : lines) add_line(all, line.name, line.figures, {line.min_ranks, line.max_ranks});
  std::vector<Table> tables;
  tables.push_back(std::move(all));
  tables.push_back(std::move(by_rank));
  return tables;
}

}  // namespace

Result<AnalysisResult> run_cann_api_sum(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) { return answer_for(rank, input.msprof); });
  AnalysisResult result;
  if (input.msprof) return result.with(msprof_tables(*torch, ranks));
  return result.with(exact_cann_api_sum_table(*torch, ranks, false), exact_cann_api_sum_table(*torch, ranks, true));
}

}  // namespace stageline
