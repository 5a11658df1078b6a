// Pauses: single cells that start late though nothing holds them up.
#include <algorithm>

#include "diagnosis/causes/start_delays.h"
#include "diagnosis/causes/step_begins.h"

namespace stageline {
namespace {

constexpr double kFarLate = 10;  // a single start that is this many median cells late is an event by itself
constexpr size_t kMinSteps = 3;  // with fewer steps, nothing can be said of every step

class Pauses {
 public:
  explicit Pauses(const StartDelays& starts) : starts_(starts), scene_(starts.scene()), g_(scene_.graph) {}

  void draft(const std::set<WorkerWay>& linked, std::vector<CauseDraft>& out) const {
    CauseDraft pauses;
    pauses.cause.kind = CauseKind::kPauses;
    std::set<int32_t> parts;
    std::set<std::pair<int32_t, int32_t>> senders;  // (from, to) of the inputs of late cells
    for (const WorkerWay& key : starts_.ways()) {
      const LateStarts& late = starts_.late_at(key);
      if (late.count == 0 || linked.contains(key)) continue;
      senders.emplace(starts_.sender_of(key), scene_.times.workers()[key.first].stage);
      pauses.cause.count += late.count;
      pauses.cause.pause_ns += late.ns;
      parts.insert(scene_.times.workers()[key.first].part);
    }
    pauses.cause.of = static_cast<int64_t>(starts_.cells());
    pauses.cause.ranks = static_cast<int64_t>(parts.size());
    if (pauses.cause.count == 0) return;
    pauses.cause.pause_ns /= static_cast<double>(pauses.cause.count);
    if (parts.size() == 1) pauses.cause.part = *parts.begin();
    // There are too few late cells to tell host from message, and nobody recorded messages. Where all wait for the same
    // stage, or two stages for each other, their messages may be at fault as well.
    const bool two_ways = senders.size() == 2 && senders.begin()->first == senders.rbegin()->second &&
                          senders.begin()->second == senders.rbegin()->first;
    if ((senders.size() == 1 || two_ways) && senders.begin()->first != kUnknown && !starts_.messages().any()) {
      std::tie(pauses.cause.from_stage, pauses.cause.stage) = *senders.begin();
      pauses.cause.guessed = true;
      pauses.cause.both_ways = two_ways;
    }
    if (pauses.cause.count < kMinLateCells) {
      pauses.cause.certain = pauses.cause.pause_ns >= kFarLate * starts_.cell_ns();
      scene_.each_op([&, by = starts_.excess()](uint32_t op, size_t s) {
        if (by(op) > 0) pauses.cause.at_steps.push_back(g_.steps[s].step);
      });
    }
    const bool rare = static_cast<double>(pauses.cause.count) <= kRareLate * static_cast<double>(starts_.cells());
    if (rare) pauses.cause.at = same_places(linked);
    // Where micro-batches were not numbered, it is a guess what a rank's first cell waits for.
    if (pauses.cause.part != kUnknown && scene_.trace.diagnostics.count("cells.schedule") == 0)
      find_what_comes_first(linked, pauses.cause);
    pauses.cause.collector = rare && parts.size() > 1 && (senders.size() > 2 || scene_.times.stages() == 1) &&
                             pauses.cause.at.empty() && pauses.cause.pause_ns >= kLongPause * starts_.cell_ns();
    pauses.without = [excess = starts_.excess(), linked, &scene = scene_](uint32_t op, double&, double& delay) {
      if (!linked.contains(way_at(scene, op))) delay -= excess(op);
    };
    out.push_back(std::move(pauses));
  }

 private:
  // Where nearly all pauses of one rank are at its first cell of a step, they lie between its steps. Rows of kind
  // "other" that were recorded there say what it does.
  void find_what_comes_first(const std::set<WorkerWay>& but, Cause& cause) const {
    const Cells& cells = scene_.trace.cells;
    std::vector<int64_t> first(g_.steps.size(), INT64_MAX);
    scene_.each_op([&](uint32_t op, size_t s) {
      if (g_.part[op] == cause.part && g_.cell[op] != kNoCell && is_compute(g_.kind[op]))
        first[s] = std::min(first[s], cells.start_ns[g_.cell[op]]);
    });
    const auto by = starts_.excess();
    std::vector<BeforeStep> pauses;
    int64_t late = 0;
    scene_.each_op([&](uint32_t op, size_t s) {
      if (g_.part[op] != cause.part || but.contains(way_at(scene_, op))) return;
      const double ns = by(op);
      if (!(ns > 0)) return;
      ++late;
      if (g_.cell[op] == kNoCell || cells.start_ns[g_.cell[op]] != first[s]) return;
      pauses.push_back({first[s] - static_cast<int64_t>(ns), first[s]});
    });
    if (pauses.empty() || static_cast<double>(pauses.size()) < kEverywhere * static_cast<double>(late)) return;
    name_what_comes_first(scene_, std::move(pauses), cause);
  }

  // Returns one late cell for each place, where nearly all late cells are at places that are late in nearly every step;
  // otherwise empty. A garbage collector knows no places.
  std::vector<uint32_t> same_places(const std::set<WorkerWay>& but) const {
    size_t steps = 0;
    for (size_t s = 0; s < g_.steps.size(); ++s) steps += scene_.counts[s];
    if (steps < kMinSteps) return {};
    std::map<StartDelays::Place, std::vector<uint32_t>> late_at;
    const auto by = starts_.excess();
    scene_.each_op([&](uint32_t op, size_t) {
      if (scene_.tells_delay(op) && g_.cell[op] != kNoCell && by(op) > 0)
        late_at[{scene_.times.worker_of(op), g_.kind[op], g_.micro_batch[op], g_.chunk[op]}].push_back(g_.cell[op]);
    });
    size_t all = 0, fixed = 0;
    std::vector<std::pair<size_t, uint32_t>> places;  // number of late steps, a cell
    for (const auto& [place, cells] : late_at) {
      if (but.contains({std::get<0>(place), std::get<1>(place) == CellKind::kForward})) continue;
      all += cells.size();
      if (static_cast<double>(cells.size()) < kEverywhere * static_cast<double>(steps)) continue;
      fixed += cells.size();
      places.emplace_back(cells.size(), cells.front());
    }
    if (static_cast<double>(fixed) < kEverywhere * static_cast<double>(all)) return {};
    std::stable_sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<uint32_t> at;
    for (const auto& [count, cell] : places) at.push_back(cell);
    return at;
  }

  const StartDelays& starts_;
  const CauseScene& scene_;
  const StepGraph& g_;
};

}  // namespace

void draft_pauses(const StartDelays& starts, const std::set<WorkerWay>& linked, std::vector<CauseDraft>& out) {
  Pauses(starts).draft(linked, out);
}

}  // namespace stageline
