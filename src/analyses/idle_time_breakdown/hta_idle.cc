#include "analyses/idle_time_breakdown/hta_idle.h"

#include "analyses/analysis.h"

namespace stageline {
namespace {

enum GapCause : uint8_t { kHostWait, kKernelWait, kOther, kCauseCount };
constexpr std::array<const char*, kCauseCount> kCauseNames = {"host_wait", "kernel_wait", "other"};

struct StreamIdle {
  int64_t stream = 0;
  std::array<bool, kCauseCount> seen = {};
  std::array<std::vector<int64_t>, kCauseCount> gaps_ns;
};

struct RankIdle {
  int32_t rank = 0;
  std::vector<StreamIdle> streams;
};

// One piece of device work, with the fields that are needed to find gaps.
struct Work {
  int64_t start, end, launch;  // launch: start of its host call; INT64_MIN when unknown
  uint32_t group;              // its stream
};

GapCause cause_of(int64_t gap_start, const Work& next, int64_t delay_ns) {
  if (next.launch != INT64_MIN && next.launch > gap_start) return kHostWait;
  return next.start - gap_start < delay_ns ? kKernelWait : kOther;
}

// Decides by the category's text, because HTA knows no other categories.
std::vector<bool> hta_work_categories(const Trace& trace) {
  return mapped<bool>(trace.categories, [&](const CategoryInfo& c) {
    return c.text == "kernel" || c.text == "Kernel" || c.text == "gpu_memset" || c.text == "Memset" ||
           c.text == "gpu_memcpy" || c.text == "Memcpy" || c.text == "mtia_ccp_events";
  });
}

// Measures gaps from the previous kernel's own end, so they are negative where kernels of a stream overlap (fault F18).
RankIdle idle_of(const TorchRun& run, const TorchRank& rank, const IdleOptions& options) {
  RankIdle idle;
  idle.rank = rank.rank;
  const std::vector<bool> is_work = hta_work_categories(*run.trace);
  std::vector<uint32_t> rows_with_index(rank.row_of_index.size());  // dropping the last step repeats rows
  for (const TorchRow& row : rank.rows) ++rows_with_index[row.index];
  std::unordered_map<int64_t, uint32_t> group_of;
  std::vector<Work> work;
  for (const TorchRow& row : rank.rows) {
    if (row.stream == -1 || !is_work[rank.part->slices.category_id[row.slice]]) continue;
    if (!options.wants(row.stream)) continue;
    const auto [it, added] = group_of.try_emplace(row.stream, static_cast<uint32_t>(idle.streams.size()));
    if (added) {
      idle.streams.emplace_back();
      idle.streams.back().stream = row.stream;
    }
    const int32_t launch = rank.row_at(row.partner_index);
    const Work item = {row.start_ns, row.end_ns(), launch < 0 ? INT64_MIN : rank.rows[launch].start_ns, it->second};
    // HTA's join with the launches repeats a kernel whose launch is in the table several times.
    const uint32_t times = launch < 0 ? 1 : rows_with_index[row.partner_index];
    work.insert(work.end(), times, item);
  }
  sort_stably(work, {}, [](const Work& a) { return std::tie(a.group, a.start); });
  for (size_t i = 0; i < work.size(); ++i) {
    StreamIdle& stream = idle.streams[work[i].group];
    if (i == 0 || work[i - 1].group != work[i].group) {
      stream.seen[kOther] = true;  // HTA puts the undefined gap of the first kernel there
      continue;
    }
    const GapCause cause = cause_of(work[i - 1].end, work[i], options.delay_ns);
    stream.seen[cause] = true;
    stream.gaps_ns[cause].push_back(work[i].start - work[i - 1].end);
  }
  return idle;
}

int64_t idle_sum(const std::vector<int64_t>& values) { return sum_over<int64_t>(values); }

int64_t idle_sum(const StreamIdle& stream) {
  return sum_over<int64_t>(stream.gaps_ns, [&](const auto& gaps) { return idle_sum(gaps); });
}

Table hta_idle_table(const std::vector<RankIdle>& ranks) {
  Table table(declared_table("idle-time-breakdown/idle-time/hta"));
  for (const RankIdle& rank : ranks)
    for (const StreamIdle& stream : rank.streams) {
      const double whole = to_us(idle_sum(stream));
      for (size_t cause = 0; cause < kCauseCount; ++cause) {
        if (!stream.seen[cause]) continue;
        const double sum = to_us(idle_sum(stream.gaps_ns[cause]));
        table.add_row(
            {int64_t{rank.rank}, stream.stream, kCauseNames[cause], round_to(sum, 2), round_to(sum / whole, 2)});
      }
    }
  return table;
}

Table hta_statistics(const std::vector<RankIdle>& ranks) {
  Table table(declared_table("idle-time-breakdown/interval-stats/hta"));
  for (const RankIdle& rank : ranks)
    for (const StreamIdle& stream : rank.streams)
      for (size_t cause = 0; cause < kCauseCount; ++cause) {
        if (!stream.seen[cause]) continue;
        const Description d = describe_us(stream.gaps_ns[cause]);
        const auto two = [](double v) { return round_to(v, 2); };
        table.add_row({kCauseNames[cause], int64_t{rank.rank}, stream.stream, static_cast<double>(d.count), two(d.mean),
                       two(d.std), two(d.min), two(d.p25), two(d.p50), two(d.p75), two(d.max)});
      }
  return table;
}

}  // namespace

Description describe_us(const std::vector<int64_t>& gaps_ns) {
  auto us = mapped<double>(gaps_ns, [&](const int64_t gap) { return to_us(gap); });
  return describe(std::move(us));
}

Result<std::vector<Table>> hta_idle_tables(const TorchRun& run, const IdleOptions& options) {
  const auto ranks = ask_ranks(run, [&](const TorchRank& rank) { return idle_of(run, rank, options); });
  for (const RankIdle& rank : ranks)
    if (rank.streams.empty())
      return make_error(ErrorCode::kBadInput, "ValueError: No objects to concatenate",
                        "HTA fails on a rank without device work (rank " + std::to_string(rank.rank) +
                            "); without --compat hta it is left out");
  std::vector<Table> tables{hta_idle_table(ranks)};
  if (options.statistics) tables.push_back(hta_statistics(ranks));
  return tables;
}

}  // namespace stageline
