// Finds the position of every rank in the parallel strategy, its peers, and its speed. It is the arrangement diagram of
// MindStudio Insight as a table. Definitions: docs/analyses/rank-map.md.
#include "analyses/analysis.h"
#include "analyses/rank_map/problems.h"
#include "base/error_words.h"
#include "facts/pipeline_facts.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "pipeline/cells/rank_layout.h"
#include "pipeline/sums/pipeline_sums.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

constexpr size_t kMaxPeersListed = 64;

struct Work {
  int64_t span_ns = kNullInteger, compute_ns = kNullInteger, exposed_ns = kNullInteger, idle_ns = kNullInteger;
};

Work work_of(const TorchRank& rank) {
  std::vector<Interval> all, compute, both;
  for (const TorchRow& row : rank.rows) {
    if (!row.on_device) continue;
    const Interval at{row.start_ns, row.end_ns()};
    all.push_back(at);
    if (row.kernel == KernelClass::kComputation) compute.push_back(at);
    if (row.kernel == KernelClass::kComputation || row.kernel == KernelClass::kCommunication) both.push_back(at);
  }
  Work work;
  if (all.empty()) return work;
  all = union_of(std::move(all));
  work.span_ns = all.back().end - all.front().start;
  work.idle_ns = work.span_ns - length_of(all);
  work.compute_ns = length_of(union_of(std::move(compute)));
  work.exposed_ns = length_of(union_of(std::move(both))) - work.compute_ns;
  return work;
}

// Completes the map with stages and replicas that are only known from the cells' layout (messages, --pp).
void complete(const Trace& trace, RankMap& map) {
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    if (map.places[p].pp == kUnknown) map.places[p].pp = trace.parts[p].stage;
    if (map.places[p].dp == kUnknown && map.places[p].tp == kUnknown) map.places[p].dp = trace.parts[p].dp;
  }
  if (map.pp == 0) map.pp = trace.pipeline_stages;
  if (map.how.empty() && map.pp > 0) map.how = words("layout.pipeline");
}

using Key = std::tuple<int32_t, int32_t, int32_t, int32_t>;

// Ranks that differ only in one dimension, found by their other coordinates. Places with an unknown coordinate have no
// peers.
class Peers {
 public:
  Peers(const Trace& trace, const RankMap& map, int32_t RankPlace::* dimension) : dimension_(dimension) {
    for (size_t p = 0; p < trace.parts.size(); ++p)
      if (whole(map.places[p])) groups_[key(map.places[p])].push_back(trace.parts[p].rank);
  }
  std::string of(const RankPlace& place) const {
    return whole(place) ? number_list(groups_.at(key(place)), kMaxPeersListed) : std::string{};
  }

 private:
  static bool whole(const RankPlace& p) {
    return p.tp != kUnknown && p.cp != kUnknown && p.dp != kUnknown && p.pp != kUnknown;
  }
  Key key(RankPlace place) const {
    place.*dimension_ = kUnknown;
    return {place.tp, place.cp, place.dp, place.pp};
  }
  int32_t RankPlace::* dimension_;
  std::map<Key, std::vector<int32_t>> groups_;
};

Table ranks_rank_map_table(const Trace& trace, const RankMap& map, const std::vector<Work>& work,
                           const std::vector<double>& bubble) {
  Table table(declared_table("rank-map/rank-map"));
  const Peers tp(trace, map, &RankPlace::tp), dp(trace, map, &RankPlace::dp), pp(trace, map, &RankPlace::pp);
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    const Part& part = trace.parts[p];
    const RankPlace& place = map.places[p];
    table.add_row({int64_t{part.rank}, part.machine_name, known_integer(part.device), known_integer(place.tp),
                   known_integer(place.cp), known_integer(place.ep), known_integer(place.dp), known_integer(place.pp),
                   tp.of(place), dp.of(place), pp.of(place), work[p].compute_ns, work[p].exposed_ns, work[p].idle_ns,
                   bubble[p]});
  }
  return table;
}

Table sizes_table(const RankMap& map) {
  Table table(declared_table("rank-map/rank-map-sizes"));
  for (const auto& [name, size] :
       {std::pair{"tp", map.tp}, {"cp", map.cp}, {"ep", map.ep}, {"dp", map.dp}, {"pp", map.pp}})
    table.add_row({std::string(name), size > 0 ? int64_t{size} : kNullInteger, map.order, map.how});
  return table;
}

}  // namespace

Result<AnalysisResult> run_rank_map(const AnalysisInput& input) {
  const Trace& trace = *input.trace;
  RankMap map = rank_map(trace, {});
  complete(trace, map);
  // The ranks of NPUs are listed without places, so that a page has them for a strategy that is typed.
  if (map.how.empty() && trace.device_family == DeviceFamily::kNpu && trace.parts.size() > 1)
    map.how = words("rank_map.unknown");
  if (map.how.empty())
    return worded_error(
        ErrorCode::kNotFound, "rank_map.unknown", {}, {},
        "stageline_mstx.describe(prof, tp=…, pp=…, dp=…) writes it while recording; docs/howto/ascend.md");
  std::vector<Work> work(trace.parts.size());
  if (Result<TorchRun> torch = make_torch_run(trace, {false, true}); torch)  // no step is left out
    parallel_for(torch->parts.size(), [&](size_t k) {
      const size_t part = torch->parts[k];
      work[part] = work_of(*torch_rank(*torch, torch->parts[k]));
    });
  const PipelineSums& sums = sums_of(input.run());
  std::vector<int64_t> bubbles(trace.parts.size(), 0), spans = bubbles;
  std::map<int32_t, int64_t> span_of;
  for (const StepSums& step : sums.steps) span_of[step.step] = step.pipeline_span_ns();
  for (const RankSums& rank : sums.ranks) {
    bubbles[rank.part] += rank.span_bubble_ns;
    spans[rank.part] += span_of[rank.step];
  }
  std::vector<double> bubble;
  for (size_t p = 0; p < spans.size(); ++p) bubble.push_back(share_of(bubbles[p], spans[p]));
  AnalysisResult result;
  result.add(ranks_rank_map_table(trace, map, work, bubble), sizes_table(map));
  if (!map.missing.empty())
    result.notes.add(problem::rank_map_missing, Args().set("rank", std::to_string(map.missing[0])), {},
                     map.missing.size());
  return result;
}

}  // namespace stageline
