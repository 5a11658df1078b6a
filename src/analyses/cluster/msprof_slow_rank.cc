// Computes msprof-analyze's vote. In each collective it votes for the rank whose operation is an outlier because it is
// too short. Up to 100 values are judged by Dixon's test of 1950 with critical values for 99.5 %, more values by three
// standard deviations.
#include "analyses/cluster/cluster.h"
#include "analyses/cluster/msprof.h"
#include "model/statistics.h"
#include "profile/device_time.h"

namespace stageline {
namespace {

// The critical values of Dixon's test for 3 to 100 values, at 99.5 %.
constexpr std::array<double, 98> kCritical = {
#include "analyses/cluster/dixon_critical.def"
};

// Returns the index of the minimum if it is an outlier by Dixon's statistics. The x are the sorted times. The
// statistics are for 3 to 7, 8 to 10, 11 to 13 and more values.
//   r10 = (x2 − x1) ÷ (xn − x1), r11 = (x2 − x1) ÷ (xn−1 − x1),
//   r21 = (x3 − x1) ÷ (xn−1 − x1), r22 = (x3 − x1) ÷ (xn−2 − x1).
std::vector<size_t> by_dixon(const std::vector<double>& times) {
  const size_t n = times.size();
  if (n < 3 || std::set<double>(times.begin(), times.end()).size() <= 3) return {};
  std::vector<double> sorted = times;
  std::ranges::sort(sorted);
  const size_t neighbour = n <= 10 ? 1 : 2, last = n <= 7 ? n - 1 : n <= 13 ? n - 2 : n - 3;
  const double range = sorted[last] - sorted[0];
  if (range == 0 || !((sorted[neighbour] - sorted[0]) / range > kCritical[n - 3])) return {};
  return {static_cast<size_t>(std::ranges::find(times, sorted[0]) - times.begin())};
}

// Returns the indexes of times more than three standard deviations below the mean, and that of the minimum if some time
// is as far above it.
std::vector<size_t> by_deviation(const std::vector<double>& times) {
  const double mean = mean_of(times), limit = 3 * population_std(times);
  std::vector<size_t> out;
  for (size_t i = 0; i < times.size(); ++i)
    if (times[i] < mean - limit) out.push_back(i);
  const size_t shortest = std::ranges::min_element(times) - times.begin();
  if (*std::ranges::max_element(times) > mean + limit && std::ranges::find(out, shortest) == out.end())
    out.push_back(shortest);
  return out;
}

struct RankOp {
  int64_t rank = 0, start_ns = 0;
  double us = 0;
};
using Groups = std::map<std::string_view, std::map<std::string_view, std::vector<RankOp>>>;  // group → name → ranks

struct Vote {
  std::string ranks;
  std::string_view op, group;
  int64_t at = 0;
  Description times;
  double sum = 0;
};

Groups groups_of(const TorchRun& run, const std::vector<std::vector<CommunicationOp>>& ranks) {
  const StringPool& names = run.trace->names;
  Groups groups;
  for (size_t k = 0; k < ranks.size(); ++k) {
    const Slices& slices = run.trace->parts[run.parts[k]].slices;
    for (const CommunicationOp& op : ranks[k]) {
      const std::string_view name = names.text(op.name);
      // msprof-analyze joins operations with their launches. Only these two spellings count as messages, so a batch of
      // sends and receives counts as a collective.
      if (slices.partner[op.slice] == kNoSliceIndex || name.find("send") != std::string_view::npos ||
          name.find("receive") != std::string_view::npos)
        continue;
      groups[names.text(op.group)][name].push_back(
          {run.ranks[run.parts[k]], op.start_ns + run.zero_ns, op.dur_ns / 1000.0});
    }
  }
  return groups;
}

// Returns the votes in the order of time, and adds those against each rank to `counts`.
std::vector<Vote> votes_of(const Groups& groups, std::map<int64_t, int64_t>& counts) {
  std::vector<Vote> votes;
  for (const auto& [group, ops] : groups) {
    // A group is left out completely unless all its operations ran on equally many ranks.
    if (std::ranges::any_of(ops, [&](const auto& op) { return op.second.size() != ops.begin()->second.size(); }))
      continue;
    for (const auto& [name, list] : ops) {
      auto times = mapped<double>(list, &RankOp::us);
      const std::vector<size_t> slow = times.size() <= 100 ? by_dixon(times) : by_deviation(times);
      if (slow.empty()) continue;
      Vote vote{"", name, group, INT64_MAX, {}, 0};
      for (const size_t i : slow) {
        ++counts[list[i].rank];
        append_item(vote.ranks, std::to_string(list[i].rank), ",");
        vote.at = std::min(vote.at, list[i].start_ns);
      }
      vote.times = describe(times);
      for (const double us : times) vote.sum += us;
      votes.push_back(std::move(vote));
    }
  }
  sort_stably(votes, {}, &Vote::at);
  return votes;
}

}  // namespace

std::vector<Table> msprof_slow_rank(const TorchRun& run, const std::vector<std::vector<CommunicationOp>>& ranks) {
  std::map<int64_t, int64_t> counts;  // for each rank
  const std::vector<Vote> votes = votes_of(groups_of(run, ranks), counts);
  Table rank_table(declared_table("slow-rank/slow-ranks/msprof"));
  for (const auto& [rank, count] : counts) rank_table.add_row({rank, count});
  Table op_table(declared_table("slow-rank/late-collectives/msprof"));
  for (const Vote& vote : votes) {
    const Description& d = vote.times;
    op_table.add_row({vote.ranks, std::string(vote.op), std::string(vote.group), vote.at, d.count, d.mean, d.std, d.min,
                      d.p25, d.p50, d.p75, d.max, vote.sum});
  }
  std::vector<Table> tables;
  tables.push_back(std::move(rank_table));
  tables.push_back(std::move(op_table));
  return tables;
}

Table msprof_clocks(const TorchRun& run) {
  const std::vector<double> usual = {1800}, idle = {800, 1800};
  Table table(declared_table("slow-rank/device-clocks/msprof"));
  for (const size_t p : run.parts) {
    auto clocks = mapped<double>(clock_times(run.trace->parts[p]), &ClockTime::mhz);
    if (clocks.empty() || clocks == usual) continue;
    std::string list;  // as numpy 2 prints what AbnormalFrequencyRanks has
    for (const double mhz : clocks)
      append_item(list, clocks == idle ? fixed(mhz, 0) : "np.int64(" + fixed(mhz, 0) + ")", ", ");
    table.add_row({int64_t{run.ranks[p]}, "[" + list + "]"});
  }
  return table;
}

}  // namespace stageline
