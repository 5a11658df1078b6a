// When devices were idle, and what they waited for. Definitions: docs/analyses/idle-time-breakdown.md.
#include "analyses/analysis.h"
#include "analyses/idle_time_breakdown/hta_idle.h"
#include "analyses/idle_time_breakdown/problems.h"
#include "profile/device_timeline.h"
#include "profile/idle_gaps.h"

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

Table device_table(const std::vector<RankIdle>& ranks) {
  Table table(declared_table("idle-time-breakdown/device-idle"));
  for (const RankIdle& rank : ranks)
    for (size_t cause = 0; cause < kIdleCauses; ++cause) {
      const std::vector<int64_t>& pieces = rank.pieces[cause];
      if (pieces.empty()) continue;
      const int64_t sum = sum_over<int64_t>(pieces);
      table.add_row({int64_t{rank.rank}, std::string(kIdleCauseNames[cause]), std::ssize(pieces), sum,
                     share_of(sum, rank.window_ns), sum / std::ssize(pieces), *std::ranges::max_element(pieces)});
    }
  return table;
}

// A row for each stream and cause, ending with what values(pieces, idle time of the stream) returns.
template <class Values> Table stream_table(const TableSpec& spec, const std::vector<RankIdle>& ranks, Values values) {
  Table table(spec);
  for (const RankIdle& rank : ranks)
    for (const StreamIdle& stream : rank.streams) {
      int64_t whole = 0;
      for (const std::vector<int64_t>& pieces : stream.pieces) whole += sum_over<int64_t>(pieces);
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
  const int64_t sum = sum_over<int64_t>(pieces);
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

}  // namespace

Result<AnalysisResult> run_idle_time_breakdown(const AnalysisInput& input) {
  TRY(options, options_of(input));
  TRY(torch, make_torch_run(*input.trace, {input.hta, !input.hta || input.include_last_step, input.rows}));
  if (input.hta) {
    AnalysisResult result = answer_of(*torch);
    TRY_OK(take(hta_idle_tables(*torch, *options), result.tables));
    return result;
  }
  AnalysisResult result;
  std::vector<RankIdle> ranks(torch->parts.size());
  parallel_for(ranks.size(),
               [&](size_t k) { ranks[k] = idle_of(*input.trace, input.trace->parts[torch->parts[k]], *options); });
  const auto is_empty = [](const RankIdle& rank) { return rank.streams.empty(); };
  if (!options->streams.empty() && std::ranges::all_of(ranks, is_empty)) result.notes.add(problem::idle_no_stream);
  result.add(device_table(ranks), stream_table(declared_table("idle-time-breakdown/idle-time"), ranks, sum_values));
  if (options->statistics)
    result.tables.push_back(
        stream_table(declared_table("idle-time-breakdown/interval-stats"), ranks, statistics_values));
  return result;
}

}  // namespace stageline
