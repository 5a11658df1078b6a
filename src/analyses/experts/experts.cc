// Which causes make ranks with experts wait for each other, each with its cost, and what another placement of the
// experts would even out. Definitions: docs/analyses/experts.md.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "analyses/analysis.h"
#include "analyses/experts/problems.h"
#include "base/csv.h"
#include "base/number.h"
#include "diagnosis/causes/cause_findings.h"
#include "diagnosis/causes/cause_kind.h"
#include "diagnosis/causes/peers/peers.h"
#include "diagnosis/what_if/layer_price.h"
#include "facts/pipeline_facts.h"
#include "model/statistics.h"
#include "pipeline/replay/peer_cells.h"
#include "pipeline/replay/theory.h"

namespace stageline {
namespace {

// "experts", "link rank 3", "rank:9": the cause in words that do not change.
std::string cause_name(const Cause& cause) {
  const Place& place = cause.place();
  const std::string ranks = (place.ranks.size() == 1 ? " rank " : " ranks ") + number_list(place.ranks);
  if (cause.kind->id != "peers") return key_of(place).empty() ? std::string(cause.kind->name) : key_of(place);
  switch (cause.own.as<PeersOwn>().fault) {
    case PeerFault::kExperts: return "experts";
    case PeerFault::kRouting: return "routing";
    case PeerFault::kSequences:
      return "sequences" + (place.replica == kUnknown ? ranks : " replica " + std::to_string(place.replica));
    case PeerFault::kLink: return "link" + ranks;
    case PeerFault::kCollective: return "collective stage " + std::to_string(cause.figures.stage);
    case PeerFault::kPauses: break;
  }
  return "pauses" + ranks;
}

Table causes_table(const Run& run) {
  Table table(declared_table("experts/expert-causes"));
  const CauseList list = causes_in_layers(run);
  for (const Cause& cause : list.causes)
    table.add_row({cause_name(cause), cause_finding(run.trace(), list, cause, theory_of(run).recognition).title,
                   cause.figures.ratio > 0 ? cause.figures.ratio : kNaN,
                   share_or_zero(cause.price.lost_ns, list.step_ns), int64_t{cause.certain}});
  return table;
}

// Rows of each expert, by stage, layer, step and micro-batch.
using Loads = std::map<std::pair<int64_t, int64_t>, std::map<std::pair<int64_t, int64_t>, std::vector<double>>>;

Result<Loads> read_loads(std::string_view rest) {
  constexpr std::string_view kColumns[] = {"step", "stage", "layer", "micro_batch", "expert", "rows"};
  constexpr int64_t kMaxExperts = 1 << 16;
  std::vector<std::string_view> fields;
  std::vector<std::string> storage;
  int64_t line = 0;
  const auto wrong = [&] {
    return make_error(ErrorCode::kBadInput, "--expert-rows: line " + std::to_string(line) +
                                                " is not step,stage,layer,micro_batch,expert,rows");
  };
  Loads loads;
  for (bool first = true; next_csv_record(rest, fields, storage, &line); first = false) {
    if (fields.size() == 1 && trim(fields[0]).empty()) continue;
    if (first && std::ranges::equal(fields, kColumns)) continue;
    int64_t values[6];
    if (fields.size() != 6) return wrong();
    for (size_t k = 0; k < 6; ++k) {
      const auto value = parse_int(trim(fields[k]));
      if (!value || *value < 0) return wrong();
      values[k] = *value;
    }
    if (values[4] >= kMaxExperts) return wrong();
    std::vector<double>& load = loads[{values[1], values[2]}][{values[0], values[3]}];
    load.resize(std::max(load.size(), static_cast<size_t>(values[4]) + 1));
    load[static_cast<size_t>(values[4])] += static_cast<double>(values[5]);
  }
  return loads;
}

// Exchanges an expert of the fullest rank with a smaller one elsewhere, where both ranks then have less than it has.
bool improve(const std::vector<double>& load, std::vector<size_t>& rank_of, std::vector<double>& total) {
  const auto full = static_cast<size_t>(std::ranges::max_element(total) - total.begin());
  double best = total[full] * (1 - 1e-12);
  size_t give = load.size(), take = load.size();
  for (size_t e = 0; e < load.size(); ++e)
    for (size_t f = 0; rank_of[e] == full && f < load.size(); ++f) {
      const double less = load[e] - load[f];
      if (rank_of[f] == full || less <= 0) continue;
      const double worse = std::max(total[full] - less, total[rank_of[f]] + less);
      if (worse < best) best = worse, give = e, take = f;
    }
  if (give == load.size()) return false;
  total[full] -= load[give] - load[take], total[rank_of[take]] += load[give] - load[take];
  std::swap(rank_of[give], rank_of[take]);
  return true;
}

// The rank of each expert if as many sit on each rank: the largest first, each on the emptiest rank with room, then
// exchanges with the fullest rank until none helps. O(experts² · exchanges).
struct Placement {
  std::vector<size_t> rank_of;
  bool sure = false;  // no other placement has a fullest rank with less
};
Placement place_experts(const std::vector<double>& load, size_t ranks) {
  std::vector<size_t> order(load.size()), room(ranks, (load.size() + ranks - 1) / ranks);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t e) { return load[e]; });
  std::vector<double> total(ranks, 0);
  Placement out{std::vector<size_t>(load.size()), false};
  for (const size_t e : order) {
    size_t best = ranks;
    for (size_t r = 0; r < ranks; ++r)
      if (room[r] > 0 && (best == ranks || total[r] < total[best])) best = r;
    out.rank_of[e] = best, total[best] += load[e], --room[best];
  }
  while (improve(load, out.rank_of, total)) {
  }
  const double mean = sum_over<double>(load) / static_cast<double>(ranks);
  out.sure = *std::ranges::max_element(total) <= std::max(mean, *std::ranges::max_element(load)) * (1 + 1e-9);
  return out;
}

// The fullest rank ÷ the mean; 0 where nothing was routed. An empty placement: experts one after the other.
double fullest(const std::vector<double>& load, size_t ranks, const std::vector<size_t>& rank_of = {}) {
  std::vector<double> total(ranks, 0);
  for (size_t e = 0; e < load.size(); ++e) total[rank_of.empty() ? e * ranks / load.size() : rank_of[e]] += load[e];
  const double sum = sum_over<double>(total);
  return sum > 0 ? *std::ranges::max_element(total) * static_cast<double>(ranks) / sum : 0;
}

// A placement learned from the first half of the steps, judged on the second.
Table placements_table(const Loads& loads, size_t ranks) {
  Table table(declared_table("experts/expert-placements"));
  for (const auto& [place, batches] : loads) {
    std::vector<int64_t> steps;
    size_t experts = 0;
    for (const auto& [at, load] : batches) {
      if (steps.empty() || steps.back() != at.first) steps.push_back(at.first);
      experts = std::max(experts, load.size());
    }
    const int64_t middle = steps[steps.size() / 2];
    std::vector<double> learned(experts, 0), now, placed, least;
    for (const auto& [at, load] : batches)
      for (size_t e = 0; e < load.size() && (at.first < middle || steps.size() == 1); ++e) learned[e] += load[e];
    const Placement best = place_experts(learned, ranks);
    for (const auto& [at, few] : batches) {
      if (at.first < middle) continue;
      std::vector<double> load = few;
      load.resize(experts);
      const double sum = sum_over<double>(load);
      if (!(sum > 0)) continue;
      now.push_back(fullest(load, ranks)), placed.push_back(fullest(load, ranks, best.rank_of));
      least.push_back(std::max(1.0, *std::ranges::max_element(load) * static_cast<double>(ranks) / sum));
    }
    table.add_row({place.first, place.second, mean_of(now), mean_of(placed), mean_of(least), int64_t{best.sure}});
  }
  return table;
}

Result<AnalysisResult> run_experts(const AnalysisInput& input) {
  const Run& run = input.run();
  const RunGraph& launched = graph_of(run, LaunchRule::kInOrder);
  if (!launched.graph) return *launched.error;
  AnalysisResult result;
  const PeerCells peers = find_peer_cells(run.trace(), *launched.graph);
  if (!peers.any()) result.notes.add(problem::experts_no_meetings);
  size_t ranks = 0;
  for (const GraphGroup& group : peers.groups) ranks = std::max<size_t>(ranks, group.end - group.begin);
  Loads loads;
  if (input.options.has("expert-rows")) {
    TRY(given, read_loads(input.options.text("expert-rows")));
    if (ranks == 0) return make_error(ErrorCode::kBadInput, "ranks do not meet inside cells, so experts have no ranks");
    loads = std::move(*given);
  }
  return result.with(causes_table(run), placements_table(loads, ranks));
}

}  // namespace

extern const Analysis experts_analysis = {
    .run = run_experts, .in_report = false, .across_ranks = true, .in_export = false};

}  // namespace stageline
