#include "compat/hta/hta.h"
#include "model/numpy_order.h"
#include "model/statistics.h"
#include "model/torch_facts.h"

namespace stageline {
namespace {

// Holds an NCCL kernel among the chosen rows.
struct Kernel {
  int32_t rank;
  int64_t stream;
  int32_t iteration;
  StringId name;
  double start_us, dur_us;
};
// Holds the facts that HTA needs of one rank.
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
  auto sorted = mapped<double>(metrics, [&](const auto& metric) { return metric.second; });
  sort_stably(sorted, std::greater<>());
  for (const auto& [at, value] : metrics) score[at] += value >= sorted[candidates - 1] ? 1 : 0;
  return true;
}

// Returns the numbers of the profiler steps that are asked for and recorded.
Result<std::set<int64_t>> chosen_steps(const TorchRun& run, const std::vector<int32_t>& steps, bool steps_given) {
  std::vector<std::set<int64_t>> listed(run.parts.size());
  parallel_for(listed.size(), [&](size_t k) {
    const auto rank = torch_rank(run, run.parts[k]);
    for (const TorchRow& row : rank->rows)
      if (const std::string_view name = run.name(row); name.starts_with("ProfilerStep"))
        if (const int64_t number = profiler_step_number(name); number >= 0) listed[k].insert(number);
  });
  std::set<int64_t> available;
  for (const std::set<int64_t>& own : listed) available.insert(own.begin(), own.end());
  std::set<int64_t> chosen = available;
  if (steps_given) std::erase_if(chosen, [&](int64_t step) { return std::ranges::find(steps, step) == steps.end(); });
  if (!chosen.empty()) return chosen;
  return hta_error("ValueError: invalid value for argument: profiler_steps=" +
                       (steps_given ? python_list(steps) : std::string("None")) + "; available profiler steps=" +
                       python_list(std::vector<int32_t>(available.begin(), available.end())),
                   "HTA looks at rows of profiler steps only");
}

// The kernels of at least 1 % of a mean step, the last one of each rank, stream, iteration and name.
struct LongKernels {
  double first_us = INFINITY, step_us = 0;
  std::map<std::tuple<int32_t, int64_t, int32_t, StringId>, Kernel> last;
};

LongKernels long_kernels(const std::vector<StragglerFacts>& ranks) {
  LongKernels out;
  std::set<int32_t> iterations;
  double last_us = -INFINITY;
  for (const StragglerFacts& facts : ranks) {
    iterations.insert(facts.iterations.begin(), facts.iterations.end());
    out.first_us = std::min(out.first_us, facts.first_us);
    last_us = std::max(last_us, facts.last_us);
  }
  out.step_us = (last_us - out.first_us) / iterations.size();
  for (const StragglerFacts& facts : ranks)
    for (const Kernel& k : facts.kernels)
      if (k.dur_us >= out.step_us * 0.01) out.last[{k.rank, k.stream, k.iteration, k.name}] = k;
  return out;
}

// Returns the stream and name whose durations differ most between ranks, as a mean over iterations.
Result<std::pair<int64_t, StringId>> widest_spread(const LongKernels& kernels) {
  std::map<std::tuple<int64_t, int32_t, StringId>, std::vector<double>> over_ranks;  // (stream, iteration, name)
  for (const auto& [key, k] : kernels.last)
    over_ranks[{k.stream, k.iteration, k.name}].push_back(k.dur_us / kernels.step_us);
  std::map<std::pair<int64_t, StringId>, std::vector<double>> spreads;
  for (const auto& [key, values] : over_ranks) {
    std::vector<double>& own = spreads[{std::get<0>(key), std::get<2>(key)}];
    if (values.size() > 1) own.push_back(sample_std(values));
  }
  if (spreads.empty())
    return hta_error("ValueError: attempt to get argmax of an empty sequence",
                     "HTA looks for kernels named ncclKernel… of at least 1 % of a step; later versions of NCCL name "
                     "theirs ncclDevKernel… (without --compat hta they count)");
  std::erase_if(spreads, [](const auto& spread) { return spread.second.empty(); });
  const auto best = std::ranges::max_element(spreads, {}, [](const auto& spread) { return mean_of(spread.second); });
  if (best != spreads.end()) return best->first;
  return hta_error("TypeError: cannot unpack non-iterable float object", "HTA needs a kernel that two ranks share");
}

}  // namespace

Result<std::vector<int32_t>> hta_stragglers(const TorchRun& run, const std::vector<int32_t>& steps, bool steps_given,
                                            int64_t candidates) {
  TRY(chosen, chosen_steps(run, steps, steps_given));
  std::vector<StragglerFacts> ranks(run.parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = facts_of(run, *torch_rank(run, run.parts[k]), *chosen); });
  const LongKernels kernels = long_kernels(ranks);
  TRY(best, widest_spread(kernels));
  std::map<int32_t, std::vector<std::pair<size_t, double>>> by_iteration;
  std::vector<int32_t> rank_of;  // rank of each metric, ascending
  for (const auto& [key, k] : kernels.last) {
    if (std::pair(k.stream, k.name) != *best) continue;
    if (rank_of.empty() || rank_of.back() != k.rank) rank_of.push_back(k.rank);
    by_iteration[k.iteration].emplace_back(rank_of.size() - 1, (k.start_us - kernels.first_us) / kernels.step_us);
  }
  const size_t count = std::max<int64_t>(1, candidates);
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
