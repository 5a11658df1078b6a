// Pauses: single cells that start late though nothing holds them up.
#include <algorithm>

#include "diagnosis/causes/pauses/pauses.h"
#include "diagnosis/causes/start_reasons.h"

namespace stageline {

extern const CauseKind pauses_cause;

namespace {

constexpr double kFarLate = 10;  // a single start that is this many median cells late is an event by itself
constexpr size_t kMinSteps = 3;  // with fewer steps, no statement about every step is possible

// Names the host of the part, or of all ranks.
void set_part(const CauseScene& scene, int32_t part, Cause& cause) {
  cause.places = {{.kind = PlaceKind::kHost}};
  if (part == kUnknown) return;
  const Part& own = scene.trace.parts[part];
  cause.places.front().ranks = {own.rank};
  cause.figures.rank = own.rank, cause.figures.stage = own.stage;
}

// Notes that a rank's pauses are before the first cells of its steps, and what it did then, by the recorded rows of
// kind "other" that fill the pauses.
void name_what_comes_first(const CauseScene& scene, const std::vector<RankWindow>& pauses, Cause& cause,
                           PausesOwn& own) {
  own.first_of_step = true;
  cause.in_steps = {cause.figures.count, std::count(scene.counts.begin(), scene.counts.end(), true)};
  cause.places.push_back(
      {.kind = PlaceKind::kBetweenSteps, .ranks = cause.place().ranks, .name = name_that_fills(scene.trace, pauses)});
}

// A rank that begins its steps late.
void suspect_begins(const CauseScene& scene, const StartDelays& starts, const LateBegins& begins,
                    std::vector<Suspect>& out) {
  Suspect suspect;
  Cause& cause = suspect.cause;
  cause.kind = &pauses_cause;
  cause.figures = {.each_ns = begins.each_ns, .count = begins.count, .of = static_cast<int64_t>(starts.cells())};
  set_part(scene, scene.times.workers()[begins.worker].part, cause);
  PausesOwn own;
  own.ranks = 1;
  name_what_comes_first(scene, begins.pauses, cause, own);
  cause.own = std::move(own);
  suspect.without = begins.without();
  out.push_back(std::move(suspect));
}

// Pauses longer than `above_ns`, on ranks whose other starts are late as well, but by less.
void suspect_standing_out(const StartDelays& starts, double above_ns, std::vector<Suspect>& out) {
  Suspect suspect;
  Cause& cause = suspect.cause;
  PausesOwn own;
  int32_t part = kUnknown;
  cause.figures.of = starts.cells();
  for (uint32_t worker = 0; worker < starts.delays().keys(); ++worker) {
    int64_t count = 0;
    for (const double ns : starts.delays().of(worker)) {
      if (ns <= above_ns) continue;
      ++count;
      cause.figures.each_ns += ns - starts.usual_ns();
    }
    if (count == 0) continue;
    part = own.ranks == 0 ? starts.scene().times.workers()[worker].part : kUnknown;
    cause.figures.count += count;
    ++own.ranks;
  }
  cause.kind = &pauses_cause;
  cause.figures.each_ns /= cause.figures.count;
  set_part(starts.scene(), part, cause);
  own.collector = own.ranks > 1;
  cause.own = std::move(own);
  suspect.without = [&scene = starts.scene(), above_ns, usual = starts.usual_ns()](uint32_t op, double&,
                                                                                   double& delay) {
    if (delay > above_ns && scene.tells_delay(op)) delay = usual;
  };
  out.push_back(std::move(suspect));
}

class PauseSearch {
 public:
  explicit PauseSearch(const StartDelays& starts) : starts_(starts), scene_(starts.scene()), g_(scene_.graph) {}

  // Cells that start late though nothing holds them up, but those of `linked`.
  void suspect(const std::set<WorkerWay>& linked, std::vector<Suspect>& out) const {
    Suspect suspect;
    Cause& cause = suspect.cause;
    PausesOwn own;
    std::set<int32_t> parts;
    std::set<std::pair<int32_t, int32_t>> senders;  // (from, to) of the inputs of late cells
    for (const WorkerWay& key : starts_.ways()) {
      const LateStarts& late = starts_.late_at(key);
      if (late.count == 0 || linked.contains(key)) continue;
      senders.emplace(starts_.sender_of(key), scene_.times.workers()[key.first].stage);
      cause.figures.count += late.count;
      cause.figures.each_ns += late.ns;
      parts.insert(scene_.times.workers()[key.first].part);
    }
    cause.figures.of = starts_.cells();
    own.ranks = parts.size();
    const int64_t count = cause.figures.count;
    if (count == 0) return;
    cause.figures.each_ns /= count;
    const double each_ns = cause.figures.each_ns;
    // There are too few late cells to tell host from message, and nobody recorded messages. Where all wait for the same
    // stage, or two stages for each other, their messages may be at fault as well.
    const bool two_ways = senders.size() == 2 && senders.begin()->first == senders.rbegin()->second &&
                          senders.begin()->second == senders.rbegin()->first;
    if ((senders.size() == 1 || two_ways) && senders.begin()->first != kUnknown && !starts_.messages().any())
      cause.or_else = {{.kind = PlaceKind::kLink,
                        .stage = senders.begin()->second,
                        .from_stage = senders.begin()->first,
                        .both_ways = two_ways}};
    if (count < kMinLateCells) {
      cause.certain = each_ns >= kFarLate * starts_.cell_ns();
      scene_.each_op([&, by = starts_.excess()](uint32_t op, size_t s) {
        if (by(op) > 0) own.at_steps.push_back(g_.steps[s].step);
      });
    }
    const bool rare = count <= kRareLate * starts_.cells();
    if (rare) own.at = same_places(linked);
    cause.figures.stage = cause.or_else.empty() ? kUnknown : cause.or_else.front().stage;
    const int32_t part = parts.size() == 1 ? *parts.begin() : kUnknown;
    set_part(scene_, part, cause);
    // Where micro-batches were not numbered, it is a guess what a rank's first cell waits for.
    if (part != kUnknown && scene_.trace.diagnostics.count("cells.schedule") == 0)
      find_what_comes_first(part, linked, cause, own);
    own.collector = rare && parts.size() > 1 && (senders.size() > 2 || scene_.times.stages() == 1) && own.at.empty() &&
                    each_ns >= kLongPause * starts_.cell_ns();
    cause.kind = &pauses_cause;
    cause.own = std::move(own);
    suspect.without = [excess = starts_.excess(), linked, &scene = scene_](uint32_t op, double&, double& delay) {
      if (!linked.contains(way_at(scene, op))) delay -= excess(op);
    };
    out.push_back(std::move(suspect));
  }

 private:
  // Where nearly all pauses of one rank are at its first cell of a step, they lie between its steps. Rows of kind
  // "other" that were recorded there say what it does.
  void find_what_comes_first(int32_t part, const std::set<WorkerWay>& but, Cause& cause, PausesOwn& own) const {
    const Cells& cells = scene_.trace.cells;
    std::vector<int64_t> first(g_.steps.size(), INT64_MAX);
    scene_.each_op([&](uint32_t op, size_t s) {
      if (g_.part[op] == part && g_.cell[op] != kNoCell && is_compute(g_.kind[op]))
        first[s] = std::min(first[s], cells.start_ns[g_.cell[op]]);
    });
    const auto by = starts_.excess();
    std::vector<RankWindow> pauses;
    int64_t late = 0;
    scene_.each_op([&](uint32_t op, size_t s) {
      if (g_.part[op] != part || but.contains(way_at(scene_, op))) return;
      const double ns = by(op);
      if (!(ns > 0)) return;
      ++late;
      if (g_.cell[op] == kNoCell || cells.start_ns[g_.cell[op]] != first[s]) return;
      pauses.push_back({part, first[s] - static_cast<int64_t>(ns), first[s]});
    });
    if (pauses.empty() || pauses.size() < kEverywhere * late) return;
    name_what_comes_first(scene_, pauses, cause, own);
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
      if (cells.size() < kEverywhere * steps) continue;
      fixed += cells.size();
      places.emplace_back(cells.size(), cells.front());
    }
    if (fixed < kEverywhere * all) return {};
    std::stable_sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<uint32_t> at;
    for (const auto& [count, cell] : places) at.push_back(cell);
    return at;
  }

  const StartDelays& starts_;
  const CauseScene& scene_;
  const StepGraph& g_;
};

void suspect_pauses(CauseScene& scene, std::vector<Suspect>& out) {
  const StartReasons& reasons = scene.measured<StartReasons>();
  if (!reasons.starts.known()) return;
  for (const LateBegins& begins : reasons.begins)
    if (!begins.as_late) suspect_begins(scene, reasons.starts, begins, out);
  if (!reasons.everywhere)
    PauseSearch(reasons.starts).suspect(reasons.linked, out);
  else if (std::isfinite(reasons.above_ns))
    suspect_standing_out(reasons.starts, reasons.above_ns, out);
}

constexpr std::string_view kLines[] = {"late", "replica-jitter"};

}  // namespace

const CauseKind pauses_cause = {.id = "pauses",
                                .name = "pauses",
                                .measured = Measured::kCounted,
                                .takes_from = kLines,
                                .of_events = true,
                                .suspect = suspect_pauses,
                                .tell = tell_pauses};

}  // namespace stageline
