// Measures the launches of device work: the call on the host, the delay, and the work itself. Definitions:
// docs/analyses/cuda-kernel-launch-stats.md.
#include "analyses/analysis.h"
#include "profile/id_slots.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

struct Options {
  int64_t runtime_cutoff_ns = 0, delay_cutoff_ns = 0;
  bool memory = true;
};

struct Launch {
  int64_t correlation = -1;
  int64_t call_ns = 0, work_ns = 0, delay_ns = 0;
  // exact mode only
  int64_t start_ns = 0, stream = -1;
  StringId call = 0, work = 0;
  KernelClass kernel = KernelClass::kNone;
  int32_t place = 0;  // position among the work of one call, because a graph launch starts many kernels
};

struct RankLaunches {
  int32_t rank = 0;
  std::vector<Launch> launches;
  int64_t orphans = 0;  // number of device operations whose call was not recorded
};

Launch launch_of(const TorchRow& call, const TorchRow& work) {
  return {call.correlation, call.dur_ns, work.dur_ns, std::max<int64_t>(0, work.start_ns - call.end_ns())};
}

std::vector<bool> hta_launch_names(const Trace& trace, bool memory) {
  std::vector<bool> out(trace.names.size());
  for (StringId id = 0; id < out.size(); ++id) {
    const std::string_view name = trace.names.text(id);
    out[id] = name == "cudaLaunchKernel" || name == "cudaLaunchKernelExC" ||
              name == "runFunction - job_prep_and_submit_for_execution" ||
              (memory && (name == "cudaMemcpyAsync" || name == "cudaMemsetAsync"));
  }
  return out;
}

// Joins every host row that has the correlation of a launch with every device row that has it.
RankLaunches hta_launches(const TorchRank& rank, const std::vector<bool>& is_launch) {
  std::vector<int64_t> ids;
  for (const TorchRow& row : rank.rows)
    if (is_launch[row.name]) ids.push_back(row.correlation);
  const IdSlots slots(ids);
  const size_t missing = slots.size();  // all calls without a number share one place, as in HTA's join
  std::vector<bool> wanted(slots.size() + 1);
  for (const int64_t id : ids) wanted[id < 0 ? missing : slots.slot(id)] = true;
  const auto place = [&](const TorchRow& row) {
    const size_t slot = row.correlation < 0 ? missing : slots.slot(row.correlation);
    return slot != IdSlots::kNone && wanted[slot] ? slot : IdSlots::kNone;
  };
  std::vector<uint32_t> begin(slots.size() + 2);
  for (const TorchRow& row : rank.rows)
    if (row.stream != -1)
      if (const size_t slot = place(row); slot != IdSlots::kNone) ++begin[slot + 1];
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<uint32_t> device(begin.back()), next(begin.begin(), begin.end() - 1);
  for (uint32_t i = 0; i < rank.rows.size(); ++i)
    if (rank.rows[i].stream != -1)
      if (const size_t slot = place(rank.rows[i]); slot != IdSlots::kNone) device[next[slot]++] = i;
  RankLaunches out;
  out.rank = rank.rank;
  for (const TorchRow& call : rank.rows) {
    if (call.stream != -1) continue;
    const size_t slot = place(call);
    if (slot == IdSlots::kNone) continue;
    for (uint32_t k = begin[slot]; k < begin[slot + 1]; ++k) {
      const TorchRow& work = rank.rows[device[k]];
      out.launches.push_back(launch_of(call, work));
    }
  }
  return out;
}

Table hta_launch_table(const std::vector<RankLaunches>& ranks) {
  Table table(declared_table("cuda-kernel-launch-stats/launches/hta"));
  for (const RankLaunches& rank : ranks)
    for (const Launch& l : rank.launches)
      table.add_row({int64_t{rank.rank}, l.correlation, to_us(l.call_ns), to_us(l.work_ns), to_us(l.delay_ns)});
  return table;
}

RankLaunches exact_launches(const TorchRank& rank, const Options& options) {
  RankLaunches out;
  out.rank = rank.rank;
  std::vector<std::pair<int32_t, int32_t>> pairs;  // row of the call, row of the work
  for (uint32_t i = 0; i < rank.rows.size(); ++i) {
    const TorchRow& row = rank.rows[i];
    if (!row.on_device) continue;
    if (!options.memory && (row.category == Category::kMemcpy || row.category == Category::kMemset)) continue;
    if (row.partner < 0) ++out.orphans;
    else pairs.emplace_back(row.partner, static_cast<int32_t>(i));
  }
  const auto row = [&](int32_t i) -> const TorchRow& { return rank.rows[i]; };
  sort_stably(pairs, [&](const auto& a, const auto& b) {
    if (a.first != b.first) {
      const int64_t x = row(a.first).start_ns, y = row(b.first).start_ns;
      return x != y ? x < y : a.first < b.first;
    }
    const int64_t x = row(a.second).start_ns, y = row(b.second).start_ns;
    return x != y ? x < y : a.second < b.second;
  });
  out.launches.reserve(pairs.size());
  for (size_t k = 0; k < pairs.size(); ++k) {
    const TorchRow &call = row(pairs[k].first), &work = row(pairs[k].second);
    Launch launch = launch_of(call, work);
    launch.start_ns = call.start_ns;
    launch.stream = work.stream;
    launch.call = call.name;
    launch.work = work.name;
    launch.kernel = work.kernel;
    launch.place = k > 0 && pairs[k - 1].first == pairs[k].first ? out.launches.back().place + 1 : 0;
    out.launches.push_back(launch);
  }
  return out;
}

Table exact_launch_table(const TorchRun& run, const std::vector<RankLaunches>& ranks) {
  Table table(declared_table("cuda-kernel-launch-stats/launches"));
  for (const RankLaunches& rank : ranks)
    for (const Launch& l : rank.launches)
      table.add_row({int64_t{rank.rank}, l.correlation, std::string(run.trace->names.text(l.call)), l.start_ns,
                     l.call_ns, l.delay_ns, std::string(run.trace->names.text(l.work)),
                     std::string(kernel_class_name(l.kernel)), l.stream, int64_t{l.place}, l.work_ns});
  return table;
}

// The bins of the histogram: each begins where the one before it ends, and the last has no end.
constexpr std::array<int64_t, 17> kBinsNs = {
    0,       1'000,     2'000,     5'000,     10'000,     20'000,      50'000,        100'000,       200'000,
    500'000, 1'000'000, 2'000'000, 5'000'000, 10'000'000, 100'000'000, 1'000'000'000, 10'000'000'000};

Table histogram_table(const std::vector<RankLaunches>& ranks) {
  Table table(declared_table("cuda-kernel-launch-stats/launch-delay-histogram"));
  std::array<int64_t, kBinsNs.size()> count = {}, call_ns = {};
  int64_t all = 0;
  for (const RankLaunches& rank : ranks)
    for (const Launch& l : rank.launches) {
      if (l.place > 0) continue;
      const size_t at = std::ranges::upper_bound(kBinsNs, l.delay_ns) - kBinsNs.begin() - 1;
      ++count[at];
      call_ns[at] += l.call_ns;
      ++all;
    }
  size_t last = kBinsNs.size();
  while (last > 0 && count[last - 1] == 0) --last;
  for (size_t i = 0; i < last; ++i)
    table.add_row({kBinsNs[i], i + 1 < kBinsNs.size() ? kBinsNs[i + 1] : kNullInteger, count[i],
                   count[i] / static_cast<double>(all), call_ns[i]});
  return table;
}

Table outlier_table(const std::vector<RankLaunches>& ranks, const Options& options, bool hta) {
  Table table(declared_table("cuda-kernel-launch-stats/outliers", hta ? "hta" : ""));
  for (const RankLaunches& rank : ranks) {
    int64_t events = 0, brief = 0, slow = 0, late = 0, call_ns = 0;
    for (const Launch& l : rank.launches) {
      if (l.place > 0) continue;
      ++events;
      brief += l.call_ns <= options.runtime_cutoff_ns && l.work_ns < l.call_ns;
      slow += l.call_ns > options.runtime_cutoff_ns;
      late += l.delay_ns > options.delay_cutoff_ns;
      call_ns += l.call_ns;
    }
    std::vector<Table::Value> row = {int64_t{rank.rank}, events, brief, slow, late};
    if (!hta) {
      row.emplace_back(call_ns);
      row.emplace_back(rank.orphans);
    }
    table.add_row(std::move(row));
  }
  return table;
}

Result<Options> options_of(const AnalysisInput& input) {
  Options options;
  TRY_OK(take(input.options.duration_ns("runtime-cutoff", 50'000), options.runtime_cutoff_ns));
  TRY_OK(take(input.options.duration_ns("launch-delay-cutoff", 100'000), options.delay_cutoff_ns));
  TRY_OK(take(input.options.flag("include-memory-events", true), options.memory));
  return options;
}

}  // namespace

Result<AnalysisResult> run_cuda_kernel_launch_stats(const AnalysisInput& input) {
  TRY(options, options_of(input));
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  const std::vector<bool> names = hta_launch_names(*input.trace, options->memory);
  const auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) {
    return input.hta ? hta_launches(rank, names) : exact_launches(rank, *options);
  });
  AnalysisResult result = answer_of(*torch);
  result.tables.push_back(outlier_table(ranks, *options, input.hta));
  if (!input.hta) result.tables.push_back(histogram_table(ranks));
  if (!input.for_report)
    result.tables.push_back(input.hta ? hta_launch_table(ranks) : exact_launch_table(*torch, ranks));
  return result;
}

}  // namespace stageline
