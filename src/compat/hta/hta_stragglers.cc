#include "compat/hta/hta_stragglers.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/parallel.h"
#include "model/numpy_order.h"
#include "model/statistics.h"
#include "model/torch_facts.h"

namespace stageline {
namespace {

// The rows that HTA needs of one rank: one for each iteration.
struct Kernel {
  int32_t rank;
  int64_t stream;
  int32_t iteration;
  StringId name;
  double start_us, dur_us;
};
struct StragglerFacts {
  std::set<int64_t> steps;       // numbers of the ProfilerStep rows
  std::set<int32_t> iterations;  // iterations of the chosen rows
  double first_us = INFINITY, last_us = -INFINITY;
  std::vector<Kernel> kernels;  // all NCCL kernels among the chosen rows, in table order
};

StragglerFacts facts_of(const TorchRun& run, const TorchRank& rank, const std::set<int64_t>& chosen) {
  StragglerFacts facts;
  for (const TorchRow& row : rank.rows) {
    if (!chosen.contains(row.iteration)) continue;
    facts.iterations.insert(row.iteration);
    facts.first_us = std::min(facts.first_us, to_us(row.start_ns));
    facts.last_us = std::max(facts.last_us, to_us(row.end_ns()));
    if (row.stream > 0 && row.iteration > 0 && run.name(row).starts_with("ncclKernel"))
      facts.kernels.push_back({rank.rank, row.stream, row.iteration, row.name, to_us(row.start_ns), to_us(row.dur_ns)});
  }
  return facts;
}

std::string python_list(const std::vector<int32_t>& numbers) {
  std::string out = "[";
  for (const int32_t n : numbers) out += (out.size() > 1 ? ", " : "") + std::to_string(n);
  return out + "]";
}

Error hta_error(std::string what, std::string hint) {
  return make_error(ErrorCode::kBadInput, std::move(what), std::move(hint));
}

// Counts the candidates of one iteration, which are those whose metric reaches the n-th largest.
bool mark_late(std::vector<std::pair<size_t, double>>& metrics, size_t candidates, std::vector<int64_t>& score) {
  if (metrics.size() < candidates) return false;
  std::vector<double> sorted;
  for (const auto& metric : metrics) sorted.push_back(metric.second);
  std::ranges::sort(sorted, std::greater<>());
  for (const auto& [at, value] : metrics) score[at] += value >= sorted[candidates - 1] ? 1 : 0;
  return true;
}

}  // namespace

Result<std::vector<int32_t>> hta_stragglers(const TorchRun& run, const std::vector<int32_t>& steps, bool steps_given,
                                            int64_t candidates) {
  const size_t count = std::max<int64_t>(1, candidates);
  std::vector<std::set<int64_t>> listed(run.parts.size());
  parallel_for(listed.size(), [&](size_t k) {
    const auto held = torch_rank(run, run.parts[k]);
    const TorchRank& rank = *held;
    for (const TorchRow& row : rank.rows)
      if (const std::string_view name = run.name(row); name.starts_with("ProfilerStep"))
        if (const int64_t number = profiler_step_number(name); number >= 0) listed[k].insert(number);
  });
  std::set<int64_t> available, chosen;
  for (const std::set<int64_t>& own : listed) available.insert(own.begin(), own.end());
  if (steps_given) {
    for (const int32_t step : steps)
      if (available.contains(step)) chosen.insert(step);
  } else {
    chosen = available;
  }
  if (chosen.empty())
    return hta_error("ValueError: invalid value for argument: profiler_steps=" +
                         (steps_given ? python_list(steps) : std::string("None")) + "; available profiler steps=" +
                         python_list(std::vector<int32_t>(available.begin(), available.end())),
                     "HTA looks at rows of profiler steps only");

  std::vector<StragglerFacts> ranks(run.parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = facts_of(run, *torch_rank(run, run.parts[k]), chosen); });
  std::set<int32_t> iterations;
  double first = INFINITY, last = -INFINITY;
  for (const StragglerFacts& facts : ranks) {
    iterations.insert(facts.iterations.begin(), facts.iterations.end());
    first = std::min(first, facts.first_us);
    last = std::max(last, facts.last_us);
  }
  const double mean = (last - first) / iterations.size();
  using Key = std::tuple<int32_t, int64_t, int32_t, StringId>;  // (rank, stream, iteration, name)
  std::map<Key, Kernel> last_long;
  for (const StragglerFacts& facts : ranks)
    for (const Kernel& k : facts.kernels)
      if (k.dur_us >= mean * 0.01) last_long[{k.rank, k.stream, k.iteration, k.name}] = k;

  std::map<std::tuple<int64_t, int32_t, StringId>, std::vector<double>> over_ranks;  // (stream, iteration, name)
  for (const auto& [key, k] : last_long) over_ranks[{k.stream, k.iteration, k.name}].push_back(k.dur_us / mean);
  std::map<std::pair<int64_t, StringId>, std::vector<double>> spreads;
  for (const auto& [key, values] : over_ranks) {
    std::vector<double>& own = spreads[{std::get<0>(key), std::get<2>(key)}];
    if (values.size() > 1) own.push_back(sample_std(values));
  }
  if (spreads.empty())
    return hta_error("ValueError: attempt to get argmax of an empty sequence",
                     "HTA looks for kernels named ncclKernel… of at least 1 % of a step; later versions of NCCL name "
                     "theirs ncclDevKernel… (without --compat hta they count)");
  const std::pair<int64_t, StringId>* best = nullptr;
  double max = 0;
  for (const auto& [key, values] : spreads) {
    if (values.empty()) continue;
    if (const double own = mean_of(values); best == nullptr || own > max) {
      best = &key;
      max = own;
    }
  }
  if (best == nullptr)
    return hta_error("TypeError: cannot unpack non-iterable float object", "HTA needs a kernel that two ranks share");

  std::map<int32_t, std::vector<std::pair<size_t, double>>> by_iteration;
  std::vector<int32_t> rank_of;  // rank of each metric, ascending
  for (const auto& [key, k] : last_long) {
    if (k.stream != best->first || k.name != best->second) continue;
    if (rank_of.empty() || rank_of.back() != k.rank) rank_of.push_back(k.rank);
    by_iteration[k.iteration].emplace_back(rank_of.size() - 1, (k.start_us - first) / mean);
  }
  std::vector<int64_t> score(rank_of.size());
  for (auto& [iteration, metrics] : by_iteration)
    if (!mark_late(metrics, count, score))
      return hta_error("IndexError: list index out of range",
                       "HTA needs at least as many ranks with the kernel as candidates; lower --num-candidates");
  // Sorts descending as pandas does: reverses the keys, sorts them ascending, and reverses the result.
  std::vector<int64_t> keys(score.rbegin(), score.rend());
  std::vector<uint32_t> order = numpy_order(keys);
  std::ranges::reverse(order);
  std::vector<int32_t> out;
  for (size_t i = 0; i < std::min(count, order.size()); ++i) out.push_back(rank_of[rank_of.size() - 1 - order[i]]);
  return out;
}

}  // namespace stageline
