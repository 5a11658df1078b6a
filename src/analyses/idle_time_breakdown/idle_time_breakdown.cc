// When devices were idle, and what they waited for. Definitions: docs/analyses/idle-time-breakdown.md.
#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "analyses/analysis.h"
#include "analyses/description_columns.h"
#include "analyses/idle_time_breakdown/problems.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

enum GapCause : uint8_t { kHostWait, kKernelWait, kOther, kBeforeFirst, kAfterLast, kCauseCount };
constexpr std::array<const char*, kCauseCount> kCauseNames = {"host_wait", "kernel_wait", "other", "before_first",
                                                              "after_last"};

struct Options {
  std::vector<int32_t> streams;
  int64_t delay_ns = 30'000;
  bool statistics = false, hta = false;
  bool wants(int64_t stream) const {
    return streams.empty() || std::binary_search(streams.begin(), streams.end(), stream);
  }
};

struct StreamIdle {
  std::string device;
  int64_t stream = 0;
  std::array<bool, kCauseCount> seen = {};
  std::array<std::vector<int64_t>, kCauseCount> gaps_ns;
};

struct RankIdle {
  int32_t rank = 0;
  bool any = false;
  std::vector<StreamIdle> streams;
  std::array<std::vector<int64_t>, kCauseCount> device_gaps_ns;
  int64_t span_ns = 0;  // from the first to the last device work
};

constexpr const char* kCauseHelp =
    "host_wait: the launch came after the stream ran dry; kernel_wait: launched in time, shorter than the delay; "
    "other: "
    "launched in time, longer";

// One piece of device work, with the fields that are needed to find gaps.
struct Work {
  int64_t start, end, launch;  // launch: start of its host call; INT64_MIN when unknown
  uint32_t group;              // its stream
};

GapCause cause_of(int64_t gap_start, const Work& next, int64_t delay_ns) {
  if (next.launch != INT64_MIN && next.launch > gap_start) return kHostWait;
  return next.start - gap_start < delay_ns ? kKernelWait : kOther;
}

// ---- HTA ------------------------------------------------------------------------------------

// Decides by the category's text, because HTA knows no other categories.
std::vector<bool> hta_work_categories(const Trace& trace) {
  std::vector<bool> out;
  for (const CategoryInfo& c : trace.categories)
    out.push_back(c.text == "kernel" || c.text == "Kernel" || c.text == "gpu_memset" || c.text == "Memset" ||
                  c.text == "gpu_memcpy" || c.text == "Memcpy" || c.text == "mtia_ccp_events");
  return out;
}

// Measures gaps from the previous kernel's own end, so they are negative where kernels of a stream overlap (fault F18).
RankIdle hta_idle(const TorchRun& run, const TorchRank& rank, const Options& options) {
  RankIdle idle;
  idle.rank = rank.rank;
  const std::vector<bool> is_work = hta_work_categories(*run.trace);
  std::vector<uint32_t> rows_with_index(rank.row_of_index.size());  // dropping the last step repeats rows
  for (const TorchRow& row : rank.rows) ++rows_with_index[row.index];
  std::unordered_map<int64_t, uint32_t> group_of;
  std::vector<Work> work;
  for (const TorchRow& row : rank.rows) {
    if (row.stream == -1 || !is_work[rank.part->slices.category_id[row.slice]]) continue;
    idle.any = true;
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
  std::stable_sort(work.begin(), work.end(), [](const Work& a, const Work& b) {
    return a.group != b.group ? a.group < b.group : a.start < b.start;
  });
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

int64_t idle_sum(const std::vector<int64_t>& values) {
  int64_t sum = 0;
  for (const int64_t v : values) sum += v;
  return sum;
}

int64_t idle_sum(const StreamIdle& stream) {
  int64_t sum = 0;
  for (const auto& gaps : stream.gaps_ns) sum += idle_sum(gaps);
  return sum;
}

Table hta_idle_table(const std::vector<RankIdle>& ranks) {
  Table table("idle-time", "Idle time (HTA)",
              {{"rank", "rank", Type::kInteger, ""},
               {"stream", "stream", Type::kInteger, ""},
               {"idle_category", "category", Type::kText, ""},
               {"idle_time", "idle time", Type::kReal, ""},
               {"idle_time_ratio", "ratio", Type::kReal, ""}});
  for (const RankIdle& rank : ranks)
    for (const StreamIdle& stream : rank.streams) {
      const double whole = to_us(idle_sum(stream));
      for (const GapCause cause : {kHostWait, kKernelWait, kOther}) {
        if (!stream.seen[cause]) continue;
        const double sum = to_us(idle_sum(stream.gaps_ns[cause]));
        table.add_row(
            {int64_t{rank.rank}, stream.stream, kCauseNames[cause], round_to(sum, 2), round_to(sum / whole, 2)});
      }
    }
  return table;
}

Description describe_us(const std::vector<int64_t>& gaps_ns) {
  std::vector<double> us;
  us.reserve(gaps_ns.size());
  for (const int64_t gap : gaps_ns) us.push_back(to_us(gap));
  return describe(std::move(us));
}

Table hta_statistics(const std::vector<RankIdle>& ranks) {
  Table table("interval-stats", "Idle intervals (HTA)",
              with_description({{"idle_category", "category", Type::kText, ""},
                                {"rank", "rank", Type::kInteger, ""},
                                {"stream", "stream", Type::kInteger, ""}}));
  for (const RankIdle& rank : ranks)
    for (const StreamIdle& stream : rank.streams)
      for (const GapCause cause : {kHostWait, kKernelWait, kOther}) {
        if (!stream.seen[cause]) continue;
        const Description d = describe_us(stream.gaps_ns[cause]);
        const auto two = [](double v) { return round_to(v, 2); };
        table.add_row({kCauseNames[cause], int64_t{rank.rank}, stream.stream, static_cast<double>(d.count), two(d.mean),
                       two(d.std), two(d.min), two(d.p25), two(d.p50), two(d.p75), two(d.max)});
      }
  return table;
}

// ---- exact ----------------------------------------------------------------------------------

RankIdle exact_idle(const TorchRank& rank, int64_t zero_ns, const Options& options) {
  RankIdle idle;
  idle.rank = rank.rank;
  std::vector<int32_t> group_of(rank.part->lanes.size(), -1);
  std::vector<Work> work;
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const TorchRow& row : rank.rows) {
    if (row.on_device || is_host(row.category)) {
      first = std::min(first, row.start_ns);
      last = std::max(last, row.end_ns());
    }
    if (!row.on_device || !options.wants(row.stream)) continue;
    if (group_of[row.lane] < 0) {
      group_of[row.lane] = static_cast<int32_t>(idle.streams.size());
      idle.streams.emplace_back();
      idle.streams.back().stream = row.stream;
      idle.streams.back().device = rank.part->lanes[row.lane].pid;
    }
    work.push_back({row.start_ns, row.end_ns(), row.partner < 0 ? INT64_MIN : rank.rows[row.partner].start_ns,
                    static_cast<uint32_t>(group_of[row.lane])});
  }
  idle.any = !work.empty();
  if (!idle.any) return idle;
  std::sort(work.begin(), work.end(), [](const Work& a, const Work& b) {
    return a.start != b.start ? a.start < b.start : a.end != b.end ? a.end < b.end : a.group < b.group;
  });
  // The same rule is applied twice: to the latest end of the stream so far, and to the latest end of all streams so
  // far.
  std::vector<int64_t> stream_end(idle.streams.size(), INT64_MIN);
  int64_t end = INT64_MIN, unrecorded_ns = 0;
  // Time between two recordings of the rank is neither idle nor a part of the span.
  const auto idles = [&](int64_t from, int64_t to) {
    return from != INT64_MIN && to > from && !rank.part->recorded_anew(zero_ns + from, zero_ns + to);
  };
  for (const Work& w : work) {
    StreamIdle& stream = idle.streams[w.group];
    if (idles(stream_end[w.group], w.start))
      stream.gaps_ns[cause_of(stream_end[w.group], w, options.delay_ns)].push_back(w.start - stream_end[w.group]);
    stream_end[w.group] = std::max(stream_end[w.group], w.end);
    if (idles(end, w.start))
      idle.device_gaps_ns[cause_of(end, w, options.delay_ns)].push_back(w.start - end);
    else if (end != INT64_MIN && w.start > end)
      unrecorded_ns += w.start - end;
    end = std::max(end, w.end);
  }
  if (work.front().start > first) idle.device_gaps_ns[kBeforeFirst].push_back(work.front().start - first);
  if (last > end) idle.device_gaps_ns[kAfterLast].push_back(last - end);
  idle.span_ns = end - work.front().start - unrecorded_ns;
  return idle;
}

std::vector<ColumnSpec> device_idle_columns() {
  return {
      {"rank", "rank", Type::kInteger, "Global rank"},
      {"cause", "cause", Type::kText,
       "host_wait: the launch came after the device had run out of work; kernel_wait: launched in time, and the gap is "
       "not longer than the delay; other: launched in time, but the gap is longer; before_first and after_last: before "
       "the first and after the last device work"},
      {"count", "gaps", Type::kInteger, ""},
      {"idle_ns", "idle", Type::kDuration, "Time outside the union of all streams' work"},
      {"idle_share", "share", Type::kShare,
       "Share of the span from the first to the last device work, as in temporal-breakdown; empty outside of the span"},
      {"mean_ns", "mean", Type::kDuration, "Mean of one gap, to the nanosecond"},
      {"max_ns", "longest", Type::kDuration, ""}};
}

Table device_table(const std::vector<RankIdle>& ranks) {
  Table table("device-idle", "Time in which a rank's devices did nothing at all", device_idle_columns());
  for (const RankIdle& rank : ranks)
    for (size_t cause = 0; cause < kCauseCount; ++cause) {
      const std::vector<int64_t>& gaps = rank.device_gaps_ns[cause];
      if (gaps.empty()) continue;
      const int64_t sum = idle_sum(gaps);
      table.add_row({int64_t{rank.rank}, kCauseNames[cause], std::ssize(gaps), sum,
                     cause < kBeforeFirst ? share_of(sum, rank.span_ns) : NAN, sum / std::ssize(gaps),
                     *std::max_element(gaps.begin(), gaps.end())});
    }
  return table;
}

std::vector<ColumnSpec> idle_time_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"device", "device", Type::kText, "As the file names it"},
          {"stream", "stream", Type::kInteger, ""},
          {"cause", "cause", Type::kText, kCauseHelp},
          {"idle_ns", "idle", Type::kDuration,
           "Idle time of this stream; other streams may be busy meanwhile (see device-idle)"},
          {"idle_share", "share", Type::kShare, "Share of the stream's idle time"}};
}

Table stream_table(const std::vector<RankIdle>& ranks) {
  Table table("idle-time", "Gaps between the work of each stream", idle_time_columns());
  for (const RankIdle& rank : ranks)
    for (const StreamIdle& stream : rank.streams) {
      const int64_t whole = idle_sum(stream);
      for (const GapCause cause : {kHostWait, kKernelWait, kOther}) {
        if (stream.gaps_ns[cause].empty()) continue;
        const int64_t sum = idle_sum(stream.gaps_ns[cause]);
        table.add_row(
            {int64_t{rank.rank}, stream.device, stream.stream, kCauseNames[cause], sum, share_of(sum, whole)});
      }
    }
  return table;
}

std::vector<ColumnSpec> interval_stats_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"device", "device", Type::kText, "As the file names it"},
          {"stream", "stream", Type::kInteger, ""},
          {"cause", "cause", Type::kText, kCauseHelp},
          {"count", "gaps", Type::kInteger, ""},
          {"mean_ns", "mean", Type::kDuration, "Mean of one gap, to the nanosecond"},
          {"std_ns", "deviation", Type::kDuration, "Sample standard deviation; empty for one gap"},
          {"min_ns", "shortest", Type::kDuration, ""},
          {"p25_ns", "25 %", Type::kDuration, "Linear between order statistics"},
          {"p50_ns", "50 %", Type::kDuration, ""},
          {"p75_ns", "75 %", Type::kDuration, ""},
          {"max_ns", "longest", Type::kDuration, ""}};
}

Table statistics_table(const std::vector<RankIdle>& ranks) {
  Table table("interval-stats", "Gaps of each stream", interval_stats_columns());
  const auto ns = [](double us) { return std::isnan(us) ? kNullInteger : int64_t{std::llround(us * 1000)}; };
  for (const RankIdle& rank : ranks)
    for (const StreamIdle& stream : rank.streams)
      for (const GapCause cause : {kHostWait, kKernelWait, kOther}) {
        if (stream.gaps_ns[cause].empty()) continue;
        const Description d = describe_us(stream.gaps_ns[cause]);
        table.add_row({int64_t{rank.rank}, stream.device, stream.stream, kCauseNames[cause], d.count, ns(d.mean),
                       ns(d.std), ns(d.min), ns(d.p25), ns(d.p50), ns(d.p75), ns(d.max)});
      }
  return table;
}

Result<Options> options_of(const AnalysisInput& input) {
  Options options;
  options.hta = input.hta;
  TRY_OK(take(input.options.numbers("streams"), options.streams));
  TRY_OK(take(input.options.microseconds("consecutive-kernel-delay", 30'000), options.delay_ns));
  TRY_OK(take(input.options.flag("show-idle-interval-stats", false), options.statistics));
  return options;
}

Result<AnalysisResult> run_idle_time_breakdown(const AnalysisInput& input) {
  TRY(options, options_of(input));
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  const auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) {
    return input.hta ? hta_idle(*torch, rank, *options) : exact_idle(rank, torch->zero_ns, *options);
  });
  for (const RankIdle& rank : ranks)
    if (input.hta && rank.streams.empty())
      return make_error(ErrorCode::kBadInput, "ValueError: No objects to concatenate",
                        "HTA fails on a rank without device work (rank " + std::to_string(rank.rank) +
                            "); without --compat hta it is left out");
  AnalysisResult result;
  note_last_step(*torch, result.notes);
  const auto is_empty = [](const RankIdle& rank) { return rank.streams.empty(); };
  if (!options->streams.empty() && std::all_of(ranks.begin(), ranks.end(), is_empty))
    result.notes.add(problem::idle_no_stream);
  if (!input.hta) result.tables.push_back(device_table(ranks));
  result.tables.push_back(input.hta ? hta_idle_table(ranks) : stream_table(ranks));
  if (options->statistics) result.tables.push_back(input.hta ? hta_statistics(ranks) : statistics_table(ranks));
  return result;
}

}  // namespace

extern const Analysis idle_time_breakdown_analysis = {
    .name = "idle-time-breakdown",
    .summary = "when devices did nothing, and what they waited for",
    .tables = {{"device-idle", "one row per rank and cause, over all streams (not with --compat hta)",
                device_idle_columns},
               {"idle-time", "one row per stream and cause", idle_time_columns},
               {"interval-stats", "lengths of the gaps, with --show-idle-interval-stats", interval_stats_columns}},
    .run = run_idle_time_breakdown,
    .needs = AnalysisNeeds::kTorch,
    .options = {{"streams", "LIST", "only these streams, such as 7,20-24 (default all)", ""},
                {"consecutive-kernel-delay", "TIME", "shorter gaps are kernel_wait (default 30us)", ""},
                {"show-idle-interval-stats", "BOOL", "also the lengths of the gaps (default false)", ""}},
    .compat = "hta"};

}  // namespace stageline
