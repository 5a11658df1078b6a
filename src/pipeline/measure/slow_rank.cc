#include "pipeline/measure/slow_rank.h"

#include <algorithm>
#include <map>

#include "base/by_enum.h"
#include "base/parallel.h"
#include "model/rank_ranges.h"
#include "pipeline/sums/stage_costs.h"

namespace stageline {
namespace {

// Ratio of one part's time to the median of its peers'.
double ratio_of(const std::vector<double>& time, const std::vector<size_t>& parts, size_t part) {
  std::vector<double> peers;
  for (const size_t other : parts)
    if (other != part) peers.push_back(time[other]);
  const double theirs = median_of(std::move(peers));
  return theirs > 0 ? time[part] / theirs : 0;
}

}  // namespace

std::vector<double> usual_busy_ns(const Trace& trace, const std::vector<int32_t>& without) {
  constexpr size_t kKinds = 5;  // F, B, I, W, F&B
  const Cells& cells = trace.cells;
  std::vector<std::vector<RankRange>> of_part(trace.parts.size());
  for (const RankRange& range : rank_ranges(cells))
    if (range.step != kUnknown && !std::binary_search(without.begin(), without.end(), range.step))
      of_part[range.part].push_back(range);
  std::vector<double> usual(trace.parts.size());
  parallel_for(of_part.size(), [&](size_t part) {
    ByEnum<CellKind, std::vector<double>, kKinds> durations;
    for (const RankRange& range : of_part[part])
      for (size_t i = range.begin; i < range.end; ++i)
        if (is_compute(cells.kind[i])) durations[cells.kind[i]].push_back(cells.dur_ns(i));
    for (std::vector<double>& values : durations) {
      const double count = values.size();
      if (count > 0) usual[part] += count * median_of(std::move(values));
    }
  });
  return usual;
}

std::optional<SlowRank> slow_rank(const Trace& trace, const PipelineSums& sums, const std::vector<int32_t>& without,
                                  double least) {
  std::vector<double> busy(trace.parts.size());
  for (const RankSums& rank : sums.ranks)
    if (!std::binary_search(without.begin(), without.end(), rank.step)) busy[rank.part] += rank.busy_ns;
  std::map<int32_t, std::vector<size_t>> by_stage;
  for (size_t part = 0; part < busy.size(); ++part)
    if (busy[part] > 0) by_stage[trace.parts[part].stage].push_back(part);
  if (std::none_of(by_stage.begin(), by_stage.end(), [](const auto& stage) { return stage.second.size() > 1; }))
    return std::nullopt;
  const std::vector<double> usual = usual_busy_ns(trace, without);
  std::optional<SlowRank> worst;
  for (const auto& [stage, parts] : by_stage) {
    if (parts.size() < 2) continue;
    for (const size_t part : parts) {
      const double ratio = std::min(ratio_of(busy, parts, part), ratio_of(usual, parts, part));
      if (ratio >= least && (!worst || ratio > worst->ratio)) worst = SlowRank{part, ratio};
    }
  }
  return worst;
}

}  // namespace stageline
