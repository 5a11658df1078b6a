// Why devices were idle, by the causes of explain, and the longest gaps with their place. Definitions:
// docs/analyses/free-analysis.md.
#include <algorithm>
#include <string>

#include "analyses/analysis.h"
#include "analyses/cluster/cluster_notes.h"
#include "analyses/cluster/durations.h"
#include "base/parallel.h"
#include "model/statistics.h"
#include "profile/device_timeline.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

struct LongGap {
  int64_t start_ns = 0, ns = 0, host_ns = 0, step = kNullInteger;
  IdleCause cause = IdleCause::kUnseen;
  uint32_t before = kNoSliceIndex, after = kNoSliceIndex;  // slices
};
struct RankAnswer {
  int32_t rank = 0;
  int64_t window_ns = 0, free_ns = 0;
  ByEnum<IdleCause, std::vector<int64_t>, kIdleCauses> pieces;
  std::vector<LongGap> longest;
};

RankAnswer answer_for(const TorchRun& run, const Part& part, size_t most) {
  const DeviceTimeline timeline = device_timeline(*run.trace, part);
  RankAnswer answer;
  answer.rank = part.rank;
  if (timeline.device.empty()) return answer;
  answer.window_ns = timeline.window_ns();
  answer.free_ns = timeline.all_idle_ns();
  answer.pieces = idle_pieces(timeline, timeline.gaps);
  std::vector<size_t> order(timeline.gaps.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const size_t count = std::min(most, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(count), order.end(), [&](size_t a, size_t b) {
    const int64_t left = timeline.gaps[a].ns(), right = timeline.gaps[b].ns();
    return left != right ? left > right : a < b;
  });
  order.resize(count);
  for (const size_t i : order) {
    const IdleGap& gap = timeline.gaps[i];
    LongGap& row = answer.longest.emplace_back();
    row.start_ns = gap.start_ns - timeline.lead_ns - run.zero_ns;
    row.ns = gap.ns();
    row.host_ns = gap.host_end_ns - gap.start_ns;
    row.cause = main_cause(idle_times(timeline, gap));
    if (gap.before >= 0) row.before = timeline.device[gap.before].slice;
    if (gap.next < 0) continue;
    row.after = timeline.device[gap.next].slice;
    const uint32_t launch = part.slices.partner[row.after];
    const uint16_t step = part.slices.step[launch == kNoSliceIndex ? row.after : launch];
    if (step > 0) row.step = part.steps[step - 1u].number;
  }
  return answer;
}

std::vector<ColumnSpec> free_reasons_columns() {
  return with_duration_columns({{"rank", "rank", Type::kInteger, "Global rank"},
                                {"cause", "cause", Type::kText, "As in idle-time-breakdown"},
                                {"free_share", "share", Type::kShare, "Share of the rank's idle time"},
                                {"window_share", "of the window", Type::kShare,
                                 "The steps or, without them, first start to last end of device work"}},
                               false);
}

Table reason_table(std::vector<RankAnswer>& ranks) {
  Table table("free-reasons", "Why the devices stood still", free_reasons_columns());
  for (RankAnswer& rank : ranks)
    for (size_t cause = 0; cause < kIdleCauses; ++cause) {
      std::vector<int64_t>& ns = rank.pieces[cause];
      if (ns.empty()) continue;
      const double sum = sum_of(ns);
      table.add_row(with_durations({int64_t{rank.rank}, std::string(kIdleCauseNames[cause]),
                                    share_of(sum, rank.free_ns), share_of(sum, rank.window_ns)},
                                   ns, false));
    }
  return table;
}

std::vector<ColumnSpec> free_time_columns() {
  return {
      {"rank", "rank", Type::kInteger, "Global rank"},
      {"window_ns", "window", Type::kDuration, "The steps or, without them, first start to last end of device work"},
      {"free_ns", "free", Type::kDuration, "Time in it without device work"},
      {"free_share", "free", Type::kShare, "Share of the window"}};
}

Table total_table(const std::vector<RankAnswer>& ranks) {
  Table table("free-time", "Free time of every device", free_time_columns());
  for (const RankAnswer& rank : ranks)
    if (rank.window_ns > 0)
      table.add_row({int64_t{rank.rank}, rank.window_ns, rank.free_ns, share_of(rank.free_ns, rank.window_ns)});
  return table;
}

std::vector<ColumnSpec> free_gaps_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"start_ns", "start", Type::kTime, "From the run's first slice"},
          {"free_ns", "gap", Type::kDuration, ""},
          {"cause", "cause", Type::kText, "The one that has most of the gap"},
          {"host_ns", "host's part", Type::kDuration, "Until the call that launched the next work returned"},
          {"step", "step", Type::kInteger, "Step of the work after the gap"},
          {"before", "after", Type::kText, "Device work that ended before the gap"},
          {"after", "before", Type::kText, "Device work that began after the gap"},
          {"launch", "launched by", Type::kText, "Call that launched the work after the gap"},
          {"operator", "of operator", Type::kText, "Operator to which that work belongs"}};
}

Table gap_table(const TorchRun& run, const std::vector<RankAnswer>& ranks) {
  Table table("free-gaps", "Longest gaps of every device", free_gaps_columns());
  for (size_t k = 0; k < ranks.size(); ++k) {
    const Slices& s = run.trace->parts[run.parts[k]].slices;
    const auto name = [&](uint32_t slice) {
      return slice == kNoSliceIndex ? std::string() : std::string(run.trace->names.text(s.name_id[slice]));
    };
    for (const LongGap& gap : ranks[k].longest) {
      const uint32_t launch = gap.after == kNoSliceIndex ? kNoSliceIndex : s.partner[gap.after];
      const uint32_t op = gap.after == kNoSliceIndex ? kNoSliceIndex : s.parent[gap.after];
      table.add_row({int64_t{ranks[k].rank}, gap.start_ns, gap.ns, std::string(kIdleCauseNames[gap.cause]), gap.host_ns,
                     gap.step, name(gap.before), name(gap.after), name(launch), name(op)});
    }
  }
  return table;
}

Result<AnalysisResult> run_free_analysis(const AnalysisInput& input) {
  TRY(most, input.options.integer("top", 10, 0));
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  std::vector<RankAnswer> ranks(torch->parts.size());
  parallel_for(ranks.size(), [&](size_t k) {
    ranks[k] = answer_for(*torch, torch->trace->parts[torch->parts[k]], static_cast<size_t>(*most));
  });
  AnalysisResult result;
  note_level_none(input, result.notes);
  result.tables.push_back(reason_table(ranks));
  result.tables.push_back(total_table(ranks));
  result.tables.push_back(gap_table(*torch, ranks));
  return result;
}

}  // namespace

extern const Analysis free_analysis_analysis = {
    .name = "free-analysis",
    .summary = "why devices were idle: what the host did meanwhile, or waiting for streams; with the longest gaps",
    .tables = {{"free-reasons", "one row per rank and cause", free_reasons_columns},
               {"free-time", "one row per rank", free_time_columns},
               {"free-gaps", "the longest gaps of every rank, with their place", free_gaps_columns}},
    .run = run_free_analysis,
    .needs = AnalysisNeeds::kTorch,
    .options = {{"top", "N",
                 "How many of the longest are listed (hccl-sum: default 15; free-analysis: 10 per rank; "
                 "slow-rank and slow-link: 15)",
                 ""}},
    .in_report = false};

}  // namespace stageline
