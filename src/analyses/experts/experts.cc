// Finds the causes that make ranks with experts wait for each other, with their costs, and the saving of another
// placement of the experts. Definitions: docs/analyses/experts.md.
#include "analyses/analysis.h"
#include "analyses/experts/expert_placement.h"
#include "analyses/experts/problems.h"
#include "diagnosis/causes/findings.h"
#include "diagnosis/causes/peers/peers.h"
#include "diagnosis/profile/expert_exchanges.h"
#include "diagnosis/what_if/layer_price.h"
#include "facts/pipeline_facts.h"
#include "pipeline/replay/peer_cells.h"
#include "pipeline/replay/step_graph.h"
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
    if (cause.together.role != Together::Role::kPartOf)
      table.add_row({cause_name(cause), cause_finding(run.trace(), list, cause, theory_of(run).recognition).title,
                     cause.figures.ratio > 0 ? cause.figures.ratio : kNaN,
                     share_or_zero(cause.price.lost_ns, list.step_ns), int64_t{cause.certain}});
  return table;
}

// Rows of each expert, by stage, layer, step and micro-batch.
using StageAndLayer = std::pair<int64_t, int64_t>;
using Loads = std::map<StageAndLayer, std::map<std::pair<int64_t, int64_t>, std::vector<double>>>;

Result<Loads> read_loads(const AnalysisOptions& options) {
  constexpr int64_t kMaxExperts = 1 << 13;
  TRY(rows, options.table("expert-rows", {"step", "stage", "layer", "micro_batch", "expert", "rows"}));
  Loads loads;
  for (size_t i = 0; i < rows->size(); i += 6) {
    const int64_t* const row = rows->data() + i;
    if (row[4] >= kMaxExperts)
      return make_error(ErrorCode::kBadInput, "--expert-rows: expert " + std::to_string(row[4]) + " is above 8191");
    std::vector<double>& load = loads[{row[1], row[2]}][{row[0], row[3]}];
    load.resize(std::max(load.size(), static_cast<size_t>(row[4]) + 1));
    load[static_cast<size_t>(row[4])] += static_cast<double>(row[5]);
  }
  // All micro-batches of a layer have the same experts.
  for (auto& [place, batches] : loads) {
    size_t experts = max_over<size_t>(batches, [&](const auto& entry) { return entry.second.size(); });
    for (auto& [at, load] : batches) load.resize(experts);
  }
  return loads;
}

// The total load of a layer's experts in the first half of the steps, and the first step of the second half.
struct Learned {
  std::vector<double> load;
  int64_t middle = 0;
};
Learned learn(const Loads::mapped_type& batches) {
  std::vector<int64_t> steps;
  for (const auto& [at, load] : batches)
    if (steps.empty() || steps.back() != at.first) steps.push_back(at.first);
  Learned out{std::vector<double>(batches.begin()->second.size(), 0), steps[steps.size() / 2]};
  for (const auto& [at, load] : batches)
    for (size_t e = 0; e < load.size() && (at.first < out.middle || steps.size() == 1); ++e) out.load[e] += load[e];
  return out;
}

Table placements_table(const Loads& loads, size_t ranks) {
  Table table(declared_table("experts/expert-placements"));
  for (const auto& [place, batches] : loads) {
    const Learned learned = learn(batches);
    std::vector<double> now, placed, least;
    const Placement best = place_experts(learned.load, ranks);
    for (const auto& [at, load] : batches) {
      const double sum = sum_over<double>(load);
      if (at.first < learned.middle || !(sum > 0)) continue;
      now.push_back(max_over_mean(rank_loads(load, ranks)));
      placed.push_back(max_over_mean(rank_loads(load, ranks, best.rank_of)));
      least.push_back(std::max(1.0, std::ranges::max(load) * static_cast<double>(ranks) / sum));
    }
    table.add_row({place.first, place.second, mean_of(now), mean_of(placed), mean_of(least), int64_t{best.sure}});
  }
  return table;
}

// Finds the saving of other rows on the ranks. It replays the second half of the steps; the experts' work changes by
// the rows, at the recorded time of a row.
class RowPrices {
 public:
  // Rows of each rank for a layer's rows of each expert.
  using Deal = std::function<std::vector<double>(const StageAndLayer&, const std::vector<double>&)>;

  RowPrices(const Trace& trace, const PeerWork& work, const Loads& loads)
      : trace_(trace), work_(work), graph_(work.graph()), peers_(work.cells()), loads_(loads) {
    for (const auto& [place, batches] : loads) middle_ = std::max(middle_, learn(batches).middle);
    // A backward may pass the layers in the order of its forward or the other way round: as rows explain more of it.
    Line forward = line(true, false), straight = line(false, false), turned = line(false, true);
    turned_ = turned.r > straight.r;
    row_ns_ = {forward.slope, turned_ ? turned.slope : straight.slope};
  }

  // Share of the time of these steps.
  double saved(const Deal& deal) const {
    std::vector<double> change(graph_.size(), 0);
    PeerTimes times;
    std::vector<double> recorded, after;
    each_group([&](std::span<const PeerCell> members, int64_t step) {
      if (step < middle_) return;
      const size_t meets = members.front().meets, places = meets + 1, first = members.front().first;
      times.own_ns.assign(&peers_.own_ns[first], &peers_.own_ns[first] + members.size() * places);
      times.transfer_ns.assign(&peers_.transfer_ns[first], &peers_.transfer_ns[first] + members.size() * places);
      recorded.resize(members.size()), after.resize(members.size());
      replay_meetings(times, members.size(), meets, recorded);
      for (size_t j = 1; j < places; j += 2) {
        const auto [place, load] = load_of(members.front(), j, turned_);
        if (!load) continue;
        const std::vector<double> now = rank_loads(*load, members.size()), then = deal(place, *load);
        for (size_t i = 0; i < members.size(); ++i)
          times.own_ns[i * places + j] +=
              row_ns_[is_forward(members[i]) ? 0 : 1] * device(members[i]) * (then[i] - now[i]);
      }
      replay_meetings(times, members.size(), meets, after);
      for (size_t i = 0; i < members.size(); ++i) change[members[i].meeting] = after[i] - recorded[i];
    });
    const std::vector<double> least = launch_delays(graph_);  // other changes shorten what is beyond it
    const WorldTimes worlds =
        replay_worlds(graph_, 2, [&](uint32_t op, size_t first, std::span<double> dur_ns, std::span<double> delay_ns) {
          const uint32_t number = peers_.of_op[op];
          double ns = graph_.dur_ns[op];  // of a cell that meets others: its work until the first meeting
          if (number != PeerCells::kNone)
            ns = peers_.cells[number].op == op ? peers_.own(peers_.cells[number]).front() : peers_.meeting_ns[number];
          for (size_t l = 0; l < dur_ns.size(); ++l) {
            dur_ns[l] = ns + (first + l > 0 ? change[op] : 0);
            delay_ns[l] = is_compute(graph_.kind[op]) ? graph_.delay_ns[op]
                                                      : std::min(graph_.delay_ns[op], least[graph_.type[op]]);
          }
        });
    double gained = 0, all = 0;
    for (size_t s = 0; s < graph_.steps.size(); ++s)
      if (graph_.steps[s].step >= middle_) gained += worlds.ns(s, 0) - worlds.ns(s, 1), all += worlds.ns(s, 0);
    return share_or_zero(gained, all);
  }

 private:
  struct Line {
    double slope = 0, r = 0;
  };

  double device(const PeerCell& cell) const { return work_.device(graph_.part[cell.op]); }
  bool is_forward(const PeerCell& cell) const { return graph_.kind[cell.op] == CellKind::kForward; }
  template <class Body> void each_group(const Body& body) const {
    for (const GraphGroup& group : peers_.groups) {
      const std::span members(&peers_.cells[group.begin], group.end - group.begin);
      body(members, int64_t{trace_.cells.step[graph_.cell[members.front().op]]});
    }
  }
  // The rows of the experts between a pair of exchanges; nullptr where the file lacks them.
  std::pair<StageAndLayer, const std::vector<double>*> load_of(const PeerCell& cell, size_t stretch,
                                                               bool turned) const {
    const int64_t layers = cell.meets / 2, k = static_cast<int64_t>(stretch) / 2;
    const int64_t layer =
        std::max(graph_.chunk[cell.op], 0) * layers + (turned && !is_forward(cell) ? layers - 1 - k : k);
    const StageAndLayer place(graph_.stage(cell.op), layer);
    const auto batches = loads_.find(place);
    if (batches == loads_.end()) return {place, nullptr};
    const auto at = batches->second.find({trace_.cells.step[graph_.cell[cell.op]], graph_.micro_batch[cell.op]});
    return {place, at == batches->second.end() ? nullptr : &at->second};
  }
  // Least squares of the experts' work over the rows of the rank, in one direction.
  Line line(bool forward, bool turned) const {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
    each_group([&](std::span<const PeerCell> members, int64_t) {
      for (size_t j = 1; j <= members.front().meets && is_forward(members.front()) == forward; j += 2) {
        const auto load = load_of(members.front(), j, turned).second;
        if (!load) continue;
        const std::vector<double> rows = rank_loads(*load, members.size());
        for (size_t i = 0; i < members.size(); ++i) {
          const double ns = peers_.own(members[i])[j] / device(members[i]);
          ++n, x += rows[i], y += ns, xx += rows[i] * rows[i], xy += rows[i] * ns, yy += ns * ns;
        }
      }
    });
    const double sxx = xx - x * x / n, sxy = xy - x * y / n, syy = yy - y * y / n;
    return sxx > 0 && syy > 0 ? Line{sxy / sxx, sxy / std::sqrt(sxx * syy)} : Line{};
  }

  const Trace& trace_;
  const PeerWork& work_;
  const StepGraph& graph_;
  const PeerCells& peers_;
  const Loads& loads_;
  int64_t middle_ = 0;
  bool turned_ = false;
  std::array<double, 2> row_ns_ = {};  // of forwards and backwards
};

Table prices_table(const RowPrices& prices, const Loads& loads, const RouterQuestion& question) {
  Table table(declared_table("experts/expert-prices"));
  if (loads.empty()) return table;
  std::map<StageAndLayer, Placement> placed;
  std::map<StageAndLayer, ExpertCopies> copied;
  for (const auto& [place, batches] : loads) {
    const Learned learned = learn(batches);
    placed[place] = place_experts(learned.load, question.ranks);
    if (question.extra > 0) copied[place] = copy_experts(learned.load, question.ranks, question.extra);
  }
  table.add_row({"placement", prices.saved([&](const StageAndLayer& at, const std::vector<double>& load) {
                   return rank_loads(load, question.ranks, placed.at(at).rank_of);
                 }),
                 kNaN});
  if (question.extra > 0)
    table.add_row({"copies", prices.saved([&](const StageAndLayer& at, const std::vector<double>& load) {
                     return rank_loads(copied.at(at).split(load), question.ranks, copied.at(at).placement.rank_of);
                   }),
                   kNaN});
  if (!(question.capacity > 0)) return table;
  double dropped = 0, all = 0;
  const auto cut = [&](std::vector<double> load) {
    const double room = std::ceil(mean_of(load) * question.capacity);
    for (double& rows : load) rows = std::min(rows, room);
    return load;
  };
  for (const auto& [place, batches] : loads)
    for (const auto& [at, load] : batches)
      all += sum_over<double>(load), dropped += sum_over<double>(load) - sum_over<double>(cut(load));
  table.add_row({"capacity", prices.saved([&](const StageAndLayer&, const std::vector<double>& load) {
                   return rank_loads(cut(load), question.ranks);
                 }),
                 share_or_zero(dropped, all)});
  return table;
}

// Ranks that meet inside cells: their own work to that of their peers.
void add_cells(const Trace& trace, const PeerWork& work, Table& table) {
  struct Row {
    double outside = kNaN;
    std::vector<double> experts;
    std::pair<double, int64_t> worst = {0, kNullInteger};
  };
  std::map<int32_t, Row> rows;  // by part
  for (const auto& [key, ratio] : work.ratios()) {
    Row& row = rows[key.first];
    if (key.second == 0) {
      row.outside = ratio.value;
    } else {
      row.experts.push_back(ratio.value);
      row.worst = std::max(row.worst, {ratio.value, int64_t{key.second} - 1});
    }
  }
  for (auto& [part, row] : rows)
    table.add_row({int64_t{trace.parts[part].rank}, int64_t{work.graph().stage_of[part]}, row.outside,
                   row.experts.empty() ? kNaN : median_of(std::move(row.experts)), row.worst.second, kNullInteger,
                   kNullInteger, kNaN, kNaN, kNullInteger, kNullInteger, kNaN, kNaN});
}

Result<RouterQuestion> read_question(const AnalysisOptions& options, size_t ranks) {
  TRY(ep, options.integer("ep", static_cast<int64_t>(std::max<size_t>(ranks, 1)), 1, 1024));
  TRY(capacity, options.real("capacity-factor", 0));
  TRY(extra, options.integer("redundant-experts", 0, 0, 4096));
  if (!(*capacity >= 0)) return make_error(ErrorCode::kUsage, "--capacity-factor must be above 0");
  return RouterQuestion{static_cast<size_t>(*ep), *capacity, *extra};
}

}  // namespace

Result<AnalysisResult> run_experts(const AnalysisInput& input) {
  const Run& run = input.run();
  const Trace& trace = run.trace();
  AnalysisResult result;
  Table ranks(declared_table("experts/experts")), causes(declared_table("experts/expert-causes"));
  Table placements(declared_table("experts/expert-placements")), prices(declared_table("experts/expert-prices"));
  if (trace.cells.size() > 0) {
    const RunGraph& launched = graph_of(run, LaunchRule::kInOrder);
    if (!launched.graph) return *launched.error;
    std::vector<bool> counts;
    for (const GraphStep& step : launched.graph->steps) counts.push_back(step.counts);
    const PeerWork work(trace, *launched.graph, counts);
    const PeerCells& peers = work.cells();
    if (!peers.any()) result.notes.add(problem::experts_no_meetings);
    size_t meet = 0;
    for (const GraphGroup& group : peers.groups) meet = std::max<size_t>(meet, group.end - group.begin);
    causes = causes_table(run);
    if (peers.any()) add_cells(trace, work, ranks);
    if (input.options.has("expert-rows")) {
      TRY(loads, read_loads(input.options));
      if (meet == 0)
        return make_error(ErrorCode::kBadInput, "ranks do not meet inside cells, so experts have no ranks");
      TRY(question, read_question(input.options, 0));
      question->ranks = meet;
      placements = placements_table(*loads, meet);
      if (peers.experts) prices = prices_table({trace, work, *loads}, *loads, *question);
    }
  } else if (const LedgerOfRun& ledger = ledger_of(run); !ledger.ledger.instances.empty()) {
    ExpertExchanges found = expert_exchanges(ledger);
    for (std::vector<Table::Value>& row : found.ranks) ranks.add_row(std::move(row));
    for (ExpertCause& cause : found.causes)
      causes.add_row({std::move(cause.name), std::move(cause.how), cause.ratio, cause.cost, int64_t{1}});
    if (!found.known) result.notes.add(problem::experts_no_rows);
    if (found.known && !found.differs) result.notes.add(problem::experts_padded);
  }
  TRY(question, read_question(input.options, trace.parts.size()));
  Table layers = router_layers(trace, *question, result.notes);
  return result.with(std::move(ranks), std::move(causes), std::move(placements), std::move(prices), std::move(layers));
}

}  // namespace stageline
