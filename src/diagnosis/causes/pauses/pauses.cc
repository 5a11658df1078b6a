// Pauses of hosts: cells that start late in some steps though nothing holds them up, or only the first ones of steps.
#include "diagnosis/causes/place_text.h"
#include "diagnosis/causes/start_reasons.h"
#include "diagnosis/causes/telling.h"
#include "pipeline/cells/problems.h"
#include "pipeline/clocks/align.h"

namespace stageline {
namespace {

struct PausesOwn {
  int64_t ranks = 0;           // on how many ranks
  bool collector = false;      // they are rare, long and on several ranks, as those of a garbage collector are
  bool first_of_step = false;  // all are at the first cell of a rank's steps; the second place names what it does then
  std::string name = {};       // what was recorded in them, if one name fills them
  // Where they are at the same places of every step: one cell for each place, the most frequently late first.
  std::vector<uint32_t> at = {};
  std::vector<int32_t> at_steps = {};  // of one or two pauses: their steps
  // All are before the last stage's first backward, after all its forwards: an unread further stage would work then.
  bool at_end = false;
};

constexpr double kFarLate = 10;  // a single start that is this many median cells late is an event whatever jitter is
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
  cause.in_steps = {cause.figures.count, std::ranges::count(scene.counts, true)};
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
  PausesOwn own{.ranks = 1};
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

// A cell that starts late though nothing holds it up.
struct Pause {
  uint32_t op;
  size_t step;  // of the graph
  WorkerWay way;
  int32_t part;
  double ns;
};

double time_of(const std::vector<Pause>& pauses) { return sum_over<double>(pauses, &Pause::ns); }

class PauseSearch {
 public:
  explicit PauseSearch(const StartDelays& starts) : starts_(starts), scene_(starts.scene()), g_(scene_.graph) {}

  // Cells that start late though nothing holds them up, but those of `linked`. A pause weighs as much as it lasts:
  // where one rank's hold nearly all the time, those of the others, which a busy machine makes everywhere, are another
  // suspicion.
  void suspect(const std::set<WorkerWay>& linked, std::vector<Suspect>& out) const {
    std::vector<Pause> all;
    scene_.each_op([&, by = starts_.excess()](uint32_t op, size_t s) {
      if (!scene_.tells_delay(op)) return;
      const WorkerWay way = way_at(scene_, op);
      if (const double ns = linked.contains(way) ? 0 : by(op); ns > 0)
        all.push_back({op, s, way, scene_.times.workers()[way.first].part, ns});
    });
    sort_stably(all, std::greater(), &Pause::ns);
    std::map<int32_t, double> of_part;
    for (const Pause& pause : all) of_part[pause.part] += pause.ns;
    for (const auto& [part, ns] : of_part) {
      if (of_part.size() == 1 || ns < kEverywhere * time_of(all)) continue;
      const auto others = std::ranges::stable_partition(all, [&](const Pause& p) { return p.part == part; }).begin();
      std::set<WorkerWay> but = linked, its_own = linked;
      for (const WorkerWay& way : starts_.ways())
        (scene_.times.workers()[way.first].part == part ? its_own : but).insert(way);
      suspect_ways({all.begin(), others}, but, out);
      return suspect_ways({others, all.end()}, its_own, out);
    }
    suspect_ways(std::move(all), linked, out);
  }

 private:
  // `all` are the pauses of all directions without `but`, the longest first.
  void suspect_ways(std::vector<Pause> all, const std::set<WorkerWay>& but, std::vector<Suspect>& out) const {
    if (all.empty()) return;
    Suspect suspect;
    Cause& cause = suspect.cause;
    PausesOwn own;
    suspect.without = [excess = starts_.excess(), but, &scene = scene_](uint32_t op, double&, double& delay) {
      if (!but.contains(way_at(scene, op))) delay -= excess(op);
    };
    keep_long_ones(all);
    std::set<int32_t> parts;
    std::set<std::pair<int32_t, int32_t>> senders;  // (from, to) of the inputs of late cells
    for (const Pause& pause : all) {
      senders.emplace(starts_.sender_of(pause.way), scene_.times.workers()[pause.way.first].stage);
      parts.insert(pause.part);
    }
    const int64_t count = all.size();
    const double each_ns = time_of(all) / count;
    cause.figures = {.each_ns = each_ns, .count = count, .of = static_cast<int64_t>(starts_.cells())};
    own.ranks = parts.size();
    // There are too few late cells to separate host and message, and messages were not recorded. Where all wait for the
    // same stage, or two stages for each other, their messages may be the cause as well.
    const bool two_ways = senders.size() == 2 && senders.begin()->first == senders.rbegin()->second &&
                          senders.begin()->second == senders.rbegin()->first;
    if ((senders.size() == 1 || two_ways) && senders.begin()->first != kUnknown && !starts_.messages().any())
      cause.or_else = {{.kind = PlaceKind::kLink,
                        .stage = senders.begin()->second,
                        .from_stage = senders.begin()->first,
                        .both_ways = two_ways}};
    cause.certain = few_steps(scene_) && beyond_jitter(all.back().ns);
    if (count < kMinLateCells) {
      cause.certain |= each_ns >= kFarLate * starts_.cell_ns();
      for (const Pause& pause : all) own.at_steps.push_back(g_.steps[pause.step].step);
      std::ranges::sort(own.at_steps);
    }
    const bool rare = count <= kRareLate * starts_.cells();
    if (rare) own.at = same_places(all);
    cause.figures.stage = cause.or_else.empty() ? kUnknown : cause.or_else.front().stage;
    const int32_t part = parts.size() == 1 ? *parts.begin() : kUnknown;
    set_part(scene_, part, cause);
    // Where micro-batches were not numbered, it is a guess what a rank's first cell waits for.
    if (part != kUnknown && scene_.trace.diagnostics.count(problem::cells_schedule.name) == 0)
      find_what_comes_first(part, all, cause, own);
    if (!own.first_of_step) own.name = name_that_fills(scene_.trace, windows_of(all));
    own.at_end = own.name.empty() && std::ranges::all_of(all, [&](const Pause& pause) { return turns(pause); });
    own.collector = rare && parts.size() > 1 && (senders.size() > 2 || scene_.times.stages() == 1) && own.at.empty() &&
                    own.name.empty() && each_ns >= kLongPause * starts_.cell_ns();
    cause.kind = &pauses_cause;
    cause.own = std::move(own);
    out.push_back(std::move(suspect));
  }

  // Returns whether a pause is longer than a cell, and far longer than any cell of the run differs from its usual time.
  bool beyond_jitter(double ns) const {
    const std::vector<double> usual_ns = scene_.times.place_means();
    double jitter_ns = starts_.cell_ns() / kStandsOut;
    scene_.each_op([&](uint32_t op, size_t) {
      if (scene_.times.worker_of(op) == CellTimes::kNone) return;
      jitter_ns = std::max(jitter_ns, std::abs(scene_.times.time_ns(op) - usual_ns[scene_.times.place_of(op)]));
    });
    return ns > kStandsOut * jitter_ns;
  }

  // Where a few pauses hold nearly all the time and last far longer than the others, these alone are counted and named.
  static void keep_long_ones(std::vector<Pause>& all) {
    const double max = kEverywhere * time_of(all);
    double ns = 0;
    for (size_t i = 0; i + 1 < all.size(); ++i)
      if ((ns += all[i].ns) >= max && all[i].ns >= kStandsOut * all[i + 1].ns) return all.resize(i + 1);
  }

  // Returns whether a pause is before the first backward of the last stage, where all forwards come first.
  bool turns(const Pause& pause) const {
    const Cells& cells = scene_.trace.cells;
    const uint32_t at = g_.cell[pause.op];
    if (at == kNoCell || !is_backward(cells.kind[at]) ||
        scene_.trace.parts[pause.part].stage + 1 != scene_.times.stages())
      return false;
    bool after = false;
    for (size_t i = at; i-- > 0 && cells.step[i] == cells.step[at] && cells.part[i] == cells.part[at];)
      if (is_backward(cells.kind[i])) return false;
    for (size_t i = at; i < cells.size() && cells.step[i] == cells.step[at] && cells.part[i] == cells.part[at]; ++i)
      after = after || cells.kind[i] == CellKind::kForward;
    return !after;
  }

  std::vector<RankWindow> windows_of(const std::vector<Pause>& all) const {
    std::vector<RankWindow> windows;
    for (const Pause& pause : all)
      if (g_.cell[pause.op] != kNoCell) {
        const int64_t start = scene_.trace.cells.start_ns[g_.cell[pause.op]];
        windows.push_back({pause.part, start - static_cast<int64_t>(pause.ns), start});
      }
    return windows;
  }

  // Where nearly all pauses of one rank are at its first cell of a step, they lie between its steps. Rows of kind
  // "other" that were recorded there say what it does.
  void find_what_comes_first(int32_t part, const std::vector<Pause>& all, Cause& cause, PausesOwn& own) const {
    const Cells& cells = scene_.trace.cells;
    std::vector<int64_t> first(g_.steps.size(), INT64_MAX);
    scene_.each_op([&](uint32_t op, size_t s) {
      if (g_.part[op] == part && g_.cell[op] != kNoCell && is_compute(g_.kind[op]))
        first[s] = std::min(first[s], cells.start_ns[g_.cell[op]]);
    });
    std::vector<Pause> begins;
    for (const Pause& pause : all)
      if (g_.cell[pause.op] != kNoCell && cells.start_ns[g_.cell[pause.op]] == first[pause.step])
        begins.push_back(pause);
    if (!begins.empty() && begins.size() >= kEverywhere * all.size())
      name_what_comes_first(scene_, windows_of(begins), cause, own);
  }

  // Returns one late cell for each place, where places that are late in nearly every step hold nearly all the time;
  // otherwise empty. A garbage collector knows no places.
  std::vector<uint32_t> same_places(const std::vector<Pause>& all) const {
    const auto steps = static_cast<size_t>(std::ranges::count(scene_.counts, true));
    if (steps < kMinSteps) return {};
    struct AtPlace {
      size_t count = 0;
      uint32_t cell = kNoCell;
      double ns = 0;
    };
    std::map<StartDelays::Place, AtPlace> late_at;
    for (const Pause& pause : all)
      if (g_.cell[pause.op] != kNoCell) {
        AtPlace& at = late_at[{pause.way.first, g_.kind[pause.op], g_.micro_batch[pause.op], g_.chunk[pause.op]}];
        ++at.count, at.ns += pause.ns;
        at.cell = std::min(at.cell, g_.cell[pause.op]);
      }
    double fixed_ns = 0;
    std::vector<AtPlace> places;
    for (const auto& [place, at] : late_at)
      if (at.count >= kEverywhere * steps) fixed_ns += at.ns, places.push_back(at);
    if (fixed_ns < kEverywhere * time_of(all)) return {};
    sort_stably(places, std::greater(), &AtPlace::count);
    return mapped<uint32_t>(places, &AtPlace::cell);
  }

  const StartDelays& starts_;
  const CauseScene& scene_;
  const StepGraph& g_;
};

// "rank 1's F0, rank 2's B1 and 3 more"
Text places_text(const PausesOwn& own, const Trace& trace) {
  constexpr size_t kShown = 2;
  Text text;
  for (size_t i = 0; i < std::min(own.at.size(), kShown); ++i) {
    const Cell cell = trace.cells.at(own.at[i]);
    Args args;
    args.set("rank", int64_t{trace.parts[cell.part].rank}).set("cell", cell_label(cell, cell.chunk > 0));
    const Text next = words("place", args);
    const bool last = own.at.size() == kShown;
    text = i == 0 ? next : words(last ? "place.and" : "place.comma", Args().set("some", text).set("next", next));
  }
  if (own.at.size() > kShown) text += words("place.more", Args().set("more", grouped(own.at.size() - kShown)));
  return text;
}

// Returns true when no other replica is on the clock of this rank's: a clock that is ahead looks like a late start.
bool alone_on_its_clock(const Trace& trace, int32_t rank) {
  const auto own = std::ranges::find(trace.parts, rank, &Part::rank);
  if (trace.alignment != AlignState::kMapped || own == trace.parts.end()) return false;
  const auto is_other = [&](const Part& part) { return part.dp != own->dp; };
  return std::ranges::any_of(trace.parts, is_other) && std::ranges::none_of(trace.parts, [&](const Part& part) {
           return is_other(part) && reference_of(part.clock_map) == reference_of(own->clock_map);
         });
}

Telling tell(const Cause& c, const PausesOwn& own, Args& args, const TellContext& context) {
  const int32_t rank = c.figures.rank;
  Telling telling;
  if (own.first_of_step) {  // of one rank: what it does before its step begins
    const bool in_most = c.in_steps.count >= kEverywhere * c.in_steps.all;
    const bool apart = in_most && c.places.back().name.empty() && alone_on_its_clock(context.trace, rank);
    args.set("name", c.places.back().name).set("late_in_steps", in_steps_text(c.in_steps)).flag("apart", apart);
    telling = say_cause("host.pauses", "host.pauses.first", args);
    telling.rank = rank;
    if (apart) telling.more = words("host.pauses.clock", args);
  } else if (!own.at.empty()) {  // a garbage collector would not choose one place either
    args.set("places", places_text(own, context.trace)).flag("one_place", own.at.size() == 1);
    args.flag("numbered", context.trace.diagnostics.count(problem::cells_schedule.name) > 0);
    telling = say_cause("host.pauses", "host.pauses.place", args);
    telling.rank = context.trace.parts[context.trace.cells.at(own.at[0]).part].rank;
  } else if (rank != kUnknown) {  // one rank alone, which no garbage collector would choose
    args.set("named", own.name.empty() ? Text{} : words("host.pauses.named", args));
    telling = say_cause("host.pauses", "host.pauses.rank", args);
  } else {
    telling = say_cause("host.pauses",
                        own.collector       ? "host.pauses.collector"
                        : c.or_else.empty() ? "host.pauses.many"
                                            : "host.pauses.guessed",
                        args);
  }
  if (!own.at_steps.empty()) telling.step = own.at_steps.front();
  if (own.at_end) telling.more = words("host.pauses.at_end");
  return telling;
}

}  // namespace

void suspect_pauses(CauseScene& scene, std::vector<Suspect>& out) {
  const StartReasons& reasons = scene.measured<StartReasons>();
  if (!reasons.starts.known()) return;
  for (const LateBegins& begins : reasons.begins)
    if (!begins.as_late) suspect_begins(scene, reasons.starts, begins, out);
  if (!reasons.everywhere) PauseSearch(reasons.starts).suspect(reasons.linked, out);
  else if (std::isfinite(reasons.above_ns)) suspect_standing_out(reasons.starts, reasons.above_ns, out);
}

Telling tell_pauses(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  const auto& own = c.own.as<PausesOwn>();
  Args args = context.args(c);
  args.set("name", own.name).set("ranks", grouped(own.ranks)).flag("guessed", !c.or_else.empty());
  if (!c.or_else.empty()) {
    const Place& link = c.or_else.front();
    args.set("from", int64_t{link.from_stage}).set("stage", int64_t{link.stage}).flag("both_ways", link.both_ways);
    args.set("where", place_text(link, context.trace.context_parallel > 1));
  }
  auto steps = mapped<std::string>(own.at_steps, [&](const int32_t step) { return std::to_string(step); });
  if (!steps.empty()) args.set("in", some_of(steps, steps.size())).flag("in_one", steps.size() == 1);
  Telling telling = tell(c, own, args, context);
  telling.table = {"stragglers", "straggler-workers"};
  return telling;
}

}  // namespace stageline
