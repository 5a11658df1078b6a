// When devices were idle, and what they waited for. Definitions: docs/analyses/idle-time-breakdown.md.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analyses/analysis.h"
#include "analyses/idle_time_breakdown/hta_idle.h"
#include "analyses/idle_time_breakdown/problems.h"
#include "base/parallel.h"
#include "profile/device_timeline.h"

namespace stageline {
namespace {

using Pieces = ByEnum<IdleCause, std::vector<int64_t>, kIdleCauses>;

struct StreamIdle {
  std::string device;
  int64_t stream = 0;
  Pieces pieces;
};

struct RankIdle {
  int32_t rank = 0;
  int64_t window_ns = 0;
  Pieces pieces;
  std::vector<StreamIdle> streams;
};

constexpr const char* kCauseHelp =
    "A gap is cut where the host is done: before that it belongs to what the host did (input, blocked, host, launch, "
    "collector, allocator, host-collective, unseen), after that to the devices (kernel: short, other: longer)";

int64_t sum_of(const std::vector<int64_t>& ns) { return std::accumulate(ns.begin(), ns.end(), int64_t{0}); }

RankIdle idle_of(const Trace& trace, const Part& part, const IdleOptions& options) {
  RankIdle idle;
  idle.rank = part.rank;
  const DeviceTimeline timeline = device_timeline(trace, part);
  std::map<std::pair<int64_t, std::string_view>, std::vector<int32_t>> streams;  // by number and device
  std::vector<int32_t> wanted;
  for (size_t j = 0; j < timeline.device.size(); ++j) {
    const auto& item = timeline.device[j];
    const int64_t stream = stream_of(part, item.slice, item.lane);
    if (!options.wants(stream)) continue;
    streams[{stream, part.lanes[item.lane].pid}].push_back(static_cast<int32_t>(j));
    wanted.push_back(static_cast<int32_t>(j));
  }
  if (wanted.empty()) return idle;
  idle.window_ns = timeline.window_ns();
  idle.pieces =
      idle_pieces(timeline, options.streams.empty() ? timeline.gaps
                                                    : idle_gaps(timeline, wanted, timeline.start_ns, timeline.end_ns));
  for (const auto& [stream, items] : streams) {
    const int64_t first = timeline.device[items.front()].start_ns;
    idle.streams.push_back({std::string(stream.second), stream.first,
                            idle_pieces(timeline, idle_gaps(timeline, items, first, INT64_MIN))});
  }
  return idle;
}

std::vector<ColumnSpec> device_idle_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"cause", "cause", Type::kText, kCauseHelp},
          {"count", "gaps", Type::kInteger, "Gaps of which the cause has a part"},
          {"idle_ns", "idle", Type::kDuration, "Time outside the union of all streams' work"},
          {"idle_share", "share", Type::kShare, "Share of the rank's window: its steps, or first to last device work"},
          {"mean_ns", "mean", Type::kDuration, "Mean part of one gap, to the nanosecond"},
          {"max_ns", "longest", Type::kDuration, ""}};
}

Table device_table(const std::vector<RankIdle>& ranks) {
  Table table("device-idle", "Time in which a rank's devices did nothing at all", device_idle_columns());
  for (const RankIdle& rank : ranks)
    for (size_t cause = 0; cause < kIdleCauses; ++cause) {
      const std::vector<int64_t>& pieces = rank.pieces[cause];
      if (pieces.empty()) continue;
      const int64_t sum = sum_of(pieces);
      table.add_row({int64_t{rank.rank}, std::string(kIdleCauseNames[cause]), std::ssize(pieces), sum,
                     share_of(sum, rank.window_ns), sum / std::ssize(pieces),
                     *std::max_element(pieces.begin(), pieces.end())});
    }
  return table;
}

std::vector<ColumnSpec> with_stream(std::vector<ColumnSpec> columns) {
  columns.insert(columns.begin(), {{"rank", "rank", Type::kInteger, "Global rank"},
                                   {"device", "device", Type::kText, "As the file names it"},
                                   {"stream", "stream", Type::kInteger, ""},
                                   {"cause", "cause", Type::kText, kCauseHelp}});
  return columns;
}

std::vector<ColumnSpec> idle_time_columns() {
  return with_stream({{"idle_ns", "idle", Type::kDuration,
                       "Idle time of this stream; other streams may be busy meanwhile (see device-idle)"},
                      {"idle_share", "share", Type::kShare, "Share of the stream's idle time"}});
}

std::vector<ColumnSpec> interval_stats_columns() {
  return with_stream({{"count", "gaps", Type::kInteger, ""},
                      {"mean_ns", "mean", Type::kDuration, "Mean part of one gap, to the nanosecond"},
                      {"std_ns", "deviation", Type::kDuration, "Sample standard deviation; empty for one gap"},
                      {"min_ns", "shortest", Type::kDuration, ""},
                      {"p25_ns", "25 %", Type::kDuration, "Linear between order statistics"},
                      {"p50_ns", "50 %", Type::kDuration, ""},
                      {"p75_ns", "75 %", Type::kDuration, ""},
                      {"max_ns", "longest", Type::kDuration, ""}});
}

// A row for each stream and cause, ending with what values(pieces, idle time of the stream) returns.
template <class Values>
Table stream_table(const char* name, const char* title, std::vector<ColumnSpec> columns,
                   const std::vector<RankIdle>& ranks, Values values) {
  Table table(name, title, std::move(columns));
  for (const RankIdle& rank : ranks)
    for (const StreamIdle& stream : rank.streams) {
      int64_t whole = 0;
      for (const std::vector<int64_t>& pieces : stream.pieces) whole += sum_of(pieces);
      for (size_t cause = 0; cause < kIdleCauses; ++cause) {
        if (stream.pieces[cause].empty()) continue;
        std::vector<Table::Value> row = {int64_t{rank.rank}, stream.device, stream.stream,
                                         std::string(kIdleCauseNames[cause])};
        for (Table::Value& value : values(stream.pieces[cause], whole)) row.push_back(std::move(value));
        table.add_row(std::move(row));
      }
    }
  return table;
}

std::vector<Table::Value> sum_values(const std::vector<int64_t>& pieces, int64_t whole) {
  const int64_t sum = sum_of(pieces);
  return {sum, share_of(sum, whole)};
}

std::vector<Table::Value> statistics_values(const std::vector<int64_t>& pieces, int64_t) {
  const auto ns = [](double us) { return std::isnan(us) ? kNullInteger : int64_t{std::llround(us * 1000)}; };
  const Description d = describe_us(pieces);
  return {d.count, ns(d.mean), ns(d.std), ns(d.min), ns(d.p25), ns(d.p50), ns(d.p75), ns(d.max)};
}

Result<IdleOptions> options_of(const AnalysisInput& input) {
  IdleOptions options;
  TRY_OK(take(input.options.numbers("streams"), options.streams));
  if (!input.hta && input.options.has("consecutive-kernel-delay"))
    return make_error(ErrorCode::kUsage, "--consecutive-kernel-delay belongs to HTA's rule", "add --compat hta");
  TRY_OK(take(input.options.duration_ns("consecutive-kernel-delay", 30'000), options.delay_ns));
  TRY_OK(take(input.options.flag("show-idle-interval-stats", false), options.statistics));
  return options;
}

Result<AnalysisResult> run_idle_time_breakdown(const AnalysisInput& input) {
  TRY(options, options_of(input));
  TRY(torch, make_torch_run(*input.trace, {input.hta, !input.hta || input.include_last_step, input.rows}));
  AnalysisResult result;
  if (input.hta) {
    note_last_step(*torch, result.notes);
    TRY(tables, hta_idle_tables(*torch, *options));
    result.tables = *std::move(tables);
    return result;
  }
  std::vector<RankIdle> ranks(torch->parts.size());
  parallel_for(ranks.size(),
               [&](size_t k) { ranks[k] = idle_of(*input.trace, input.trace->parts[torch->parts[k]], *options); });
  const auto is_empty = [](const RankIdle& rank) { return rank.streams.empty(); };
  if (!options->streams.empty() && std::all_of(ranks.begin(), ranks.end(), is_empty))
    result.notes.add(problem::idle_no_stream);
  result.tables.push_back(device_table(ranks));
  result.tables.push_back(
      stream_table("idle-time", "Gaps between the work of each stream", idle_time_columns(), ranks, sum_values));
  if (options->statistics)
    result.tables.push_back(
        stream_table("interval-stats", "Gaps of each stream", interval_stats_columns(), ranks, statistics_values));
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
                {"consecutive-kernel-delay", "TIME", "with --compat hta: shorter gaps are kernel_wait (default 30us)",
                 ""},
                {"show-idle-interval-stats", "BOOL", "also the lengths of the gaps (default false)", ""}},
    .compat = "hta"};

}  // namespace stageline
