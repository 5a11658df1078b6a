// Why devices were idle, by the causes of explain, and the longest gaps with their place. Definitions:
// docs/analyses/free-analysis.md.
#include "analyses/cluster/cluster.h"
#include "model/statistics.h"
#include "profile/device_timeline.h"
#include "profile/idle_gaps.h"

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

RankAnswer answer_for(const TorchRun& run, const Part& part, size_t max) {
  const DeviceTimeline timeline = device_timeline(*run.trace, part);
  RankAnswer answer;
  answer.rank = part.rank;
  if (timeline.device.empty()) return answer;
  answer.window_ns = timeline.window_ns();
  answer.free_ns = timeline.all_idle_ns();
  answer.pieces = idle_pieces(timeline, timeline.gaps);
  std::vector<size_t> order(timeline.gaps.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const size_t count = std::min(max, order.size());
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

Table reason_table(std::vector<RankAnswer>& ranks) {
  Table table(declared_table("free-analysis/free-reasons"));
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

Table total_table(const std::vector<RankAnswer>& ranks) {
  Table table(declared_table("free-analysis/free-time"));
  for (const RankAnswer& rank : ranks)
    if (rank.window_ns > 0)
      table.add_row({int64_t{rank.rank}, rank.window_ns, rank.free_ns, share_of(rank.free_ns, rank.window_ns)});
  return table;
}

Table gap_table(const TorchRun& run, const std::vector<RankAnswer>& ranks) {
  Table table(declared_table("free-analysis/free-gaps"));
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

}  // namespace

Result<AnalysisResult> run_free_analysis(const AnalysisInput& input) {
  TRY(max, input.options.integer("top", 10, 0));
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  std::vector<RankAnswer> ranks(torch->parts.size());
  parallel_for(ranks.size(), [&](size_t k) {
    ranks[k] = answer_for(*torch, torch->trace->parts[torch->parts[k]], static_cast<size_t>(*max));
  });
  AnalysisResult result;
  note_level_none(input, result.notes);
  return result.with(reason_table(ranks), total_table(ranks), gap_table(*torch, ranks));
}

}  // namespace stageline
