#include "diagnosis/causes/gap_times.h"
#include "diagnosis/causes/long_step_words.h"
#include "diagnosis/diff/diff_parts.h"
#include "diagnosis/diff/diff_side.h"
#include "diagnosis/diff/problems.h"

namespace stageline {
namespace {

auto step_in(const WorldTimes& times, size_t world) {
  return [&times, world](size_t s) { return times.ns(s, world); };
}

// Returns how much the groups named by `merged` change a step together. `order` gives the groups in the order of
// scenarios.
auto merged_effect(const std::vector<uint32_t>& order, const std::vector<bool>& merged, const WorldTimes& summed) {
  return [&](size_t s) {
    double ns = 0;
    for (size_t i = 0; i < order.size(); ++i)
      if (merged[order[i]]) ns += summed.ns(s, i + 1) - summed.ns(s, i);
    return ns;
  };
}

// Standard errors by which the change must exceed 0 where sure groups make up half of it.
constexpr double kSureChangeErrors = 3;

// With few steps, one pause can hide what every cell of a stage shows. So the change also counts as sure where the
// groups that are sure have its sign and make up half of it.
bool groups_are_sure(const RunDiff& diff) {
  double sure_ns = 0;
  for (const DiffGroup& group : diff.groups) sure_ns += group.sure ? group.effect_ns : 0;
  if (!(sure_ns / diff.change_ns >= 0.5)) return false;
  // Pauses are real; only their number per step is random. So what they cost scatters, and with it the change. The same
  // holds for a device that is slow in some steps.
  double paused_ns = 0;
  for (const DiffGroup& group : diff.groups)
    paused_ns += group.sure && (group.paused > 0 || group.certain) ? group.effect_ns : 0;
  const double errors = paused_ns / diff.change_ns >= 0.5 ? 1 : kSureChangeErrors;
  return std::abs(diff.change_ns) >= errors * diff.error_ns;
}

constexpr double kScattered = 0.25;  // minimum share of the delays' change that must be on stages where it is not sure

bool of_stage(const DiffGroup& group) { return group.cause == DiffCause::kDelay && group.type.empty(); }

// The pauses among the delays that were added, on all stages.
struct Pauses {
  bool any = false;
  // They are enough, and so long that no scatter of cells makes them; only their number per step is chance.
  bool certain = false;
};
constexpr int64_t kMinPauses = 3;
constexpr double kLongPause = 0.5;  // of the mean compute operation

Pauses pauses_of(const StepGraph& g, const std::vector<size_t>& steps, const OpTimes& a_times,
                 const DiffGroups& groups) {
  std::vector<double> changes;
  double compute_ns = 0, computed = 0;
  for (const size_t step : steps)
    for (uint32_t op = g.steps[step].begin; op < g.steps[step].end; ++op) {
      if (is_compute(g.kind[op])) compute_ns += g.dur_ns[op], ++computed;
      if (groups.of_delay[op] < groups.list.size() && of_stage(groups.list[groups.of_delay[op]]))
        changes.push_back(g.delay_ns[op] - a_times.delay_ns[op]);
    }
  DiffGroup all;
  tell_pauses(changes, all);
  return {all.paused > 0, all.paused >= kMinPauses && all.pause_ns * computed >= kLongPause * compute_ns};
}

// Returns for each group whether it is one of the stages' delays that are reported as one. They are if much of them is
// on stages whose own delays are within noise, and only their sum is above it. A pause hits a stage only in some steps,
// so almost no single stage has enough of them. The delays of unsure stages must reach `min_pauses_ns` or kScattered of
// all; `min_pauses_ns` is infinite for other delays than pauses.
template <class Sure, class SureTogether>
std::vector<bool> delays_together(const DiffGroups& groups, const std::vector<uint32_t>& order, const Pairs& pairs,
                                  const WorldTimes& summed, const Sure& sure, const SureTogether& sure_together,
                                  double min_pauses_ns) {
  std::vector<bool> merged(order.size(), false);
  const std::vector<bool> none = merged;
  size_t unsure = 0;
  double unsure_ns = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const DiffGroup& group = groups.list[order[i]];
    if (!of_stage(group)) continue;
    merged[order[i]] = true;
    const auto [ns, error_ns] =
        pairs.change([&](size_t s) { return summed.ns(s, i); }, [&](size_t s) { return summed.ns(s, i + 1); });
    if (sure(ns, error_ns)) continue;
    unsure_ns += ns;
    ++unsure;
  }
  const auto [ns, error_ns] = pairs.change([](size_t) { return 0.0; }, merged_effect(order, merged, summed));
  const auto members = std::ranges::count(merged, true);
  const bool scattered =
      unsure > 0 && members > 1 && std::abs(unsure_ns) >= std::min(kScattered * std::abs(ns), min_pauses_ns);
  return scattered && sure_together(ns, error_ns) ? merged : none;
}

double mean_compute_ns(const StepGraph& g, const std::vector<size_t>& steps) {
  double ns = 0, count = 0;
  for (const size_t step : steps)
    for (uint32_t op = g.steps[step].begin; op < g.steps[step].end; ++op)
      if (is_compute(g.kind[op])) ns += g.dur_ns[op], ++count;
  return ns / std::max(count, 1.0);
}

// Effects of the groups, by two replays of B's graph for each of them.
struct Replayed {
  // Groups, those with the largest effect by themselves first. World i of `summed` has B's times in the first i of
  // them, and A's in all others.
  std::vector<uint32_t> order;
  WorldTimes summed;
};

// World g + 1 has B's times in group g only, and world 0 has only A's.
Replayed replay_groups(const StepGraph& b, const OpTimes& a_times, const DiffGroups& groups, const Pairs& pairs) {
  const size_t count = groups.list.size();
  const auto set = [&](uint32_t op, bool dur_of_b, bool delay_of_b, double& dur, double& delay) {
    dur = dur_of_b ? b.dur_ns[op] : a_times.dur_ns[op];
    delay = delay_of_b ? b.delay_ns[op] : a_times.delay_ns[op];
  };
  const WorldTimes alone =
      replay_worlds(b, count + 1, [&](uint32_t op, size_t first, std::span<double> dur, std::span<double> delay) {
        for (size_t i = 0; i < dur.size(); ++i)
          set(op, first + i == groups.of_dur[op] + size_t{1}, first + i == groups.of_delay[op] + size_t{1}, dur[i],
              delay[i]);
      });
  std::vector<double> by_itself;
  for (size_t g = 0; g < count; ++g)
    by_itself.push_back(std::abs(pairs.change(step_in(alone, 0), step_in(alone, g + 1)).first));
  auto order = indexes<uint32_t>(count);
  sort_stably(order, std::greater(), [&](uint32_t x) { return by_itself[x]; });
  // Position of each group in that order; operations without a change have the last one.
  std::vector<size_t> place(count + 1, count);
  for (size_t i = 0; i < count; ++i) place[order[i]] = i;
  WorldTimes summed =
      replay_worlds(b, count + 1, [&](uint32_t op, size_t first, std::span<double> dur, std::span<double> delay) {
        const size_t dur_place = place[groups.of_dur[op]], delay_place = place[groups.of_delay[op]];
        for (size_t i = 0; i < dur.size(); ++i)
          set(op, first + i > dur_place, first + i > delay_place, dur[i], delay[i]);
      });
  return {std::move(order), std::move(summed)};
}

// Changes of the starts of each group of delays (the last entry: of the merged ones), and of the durations of messages.
std::vector<std::vector<double>> changes_of(const StepGraph& g, const std::vector<size_t>& steps,
                                            const OpTimes& a_times, const DiffGroups& groups,
                                            const std::vector<bool>& merged) {
  const size_t count = groups.list.size();
  std::vector<std::vector<double>> changes(count + 1);
  for (const size_t step : steps)
    for (uint32_t op = g.steps[step].begin; op < g.steps[step].end; ++op) {
      if (const uint32_t d = groups.of_delay[op]; d < count && groups.list[d].cause == DiffCause::kDelay)
        changes[merged[d] ? count : d].push_back(g.delay_ns[op] - a_times.delay_ns[op]);
      if (const uint32_t m = groups.of_dur[op]; m < count && groups.list[m].cause == DiffCause::kMessages)
        changes[m].push_back(g.dur_ns[op] - a_times.dur_ns[op]);
    }
  return changes;
}

// Standard error of the mean gap between steps, without long gaps.
double gap_error(const StepPeriods& periods) {
  std::vector<double> usual;
  for (size_t i = 0; i < periods.gaps.size(); ++i)
    if (!periods.is_long(i)) usual.push_back(periods.gaps[i].ns);
  return usual.size() > 1 ? standard_error(usual, usual.size()) : 0.0;
}

DiffRun described(const Side& side, DiffRun run) {
  run.steps = side.steps.size();
  run.left_out = std::ssize(side.usual) - run.steps;
  run.step_ns = mean_of(side.step_ns) + side.periods.mean_ns + side.long_ns;
  run.error_ns = standard_error(side.step_ns, run.steps);
  return run;
}

bool has_kind(const Trace& trace, CellKind kind) {
  return std::ranges::find(trace.cells.kind, kind) != trace.cells.kind.end();
}

// Removes the cells of a kind, and the links that start or end at one.
void remove_cells(Trace& trace, CellKind kind) {
  std::vector<uint32_t> now(trace.cells.size(), kNoSlice);  // the new number of each cell
  uint32_t count = 0;
  for (size_t i = 0; i < now.size(); ++i)
    if (trace.cells.kind[i] != kind) now[i] = count++;
  std::erase_if(trace.links, [&](const Link& l) { return now[l.from_cell] == kNoSlice || now[l.to_cell] == kNoSlice; });
  for (Link& l : trace.links) l = {now[l.from_cell], now[l.to_cell]};
  trace.cells.filter([&](size_t i) { return now[i] != kNoSlice; });
}

// Returns the trace without the collectives or the optimizer that the other run did not record. There the same time is
// a gap between steps, so it has to be one here too. Empty where both runs recorded the same kinds.
std::optional<Trace> without_unshared(const Trace& trace, const Trace& other, const char* name, Diagnostics& notes) {
  std::optional<Trace> out;
  for (const CellKind kind : {CellKind::kCollective, CellKind::kOptimizer}) {
    if (!has_kind(trace, kind) || has_kind(other, kind)) continue;
    if (!out) out = trace.copy();
    remove_cells(*out, kind);
    notes.add(problem::diff_not_in_both, Args().set("run", name).flag("optimizer", kind == CellKind::kOptimizer));
  }
  return out;
}

// Adds the groups of one comparison to its answer: passes in the order of their calls in diff_runs().
class Differ {
 public:
  Differ(const Side& a, const Side& b, RunDiff& diff)
      : a_(a), b_(b), diff_(diff), pairs_(a, b), min_ns_(kMinDiffShare * diff.a.step_ns),
        compute_ns_(mean_compute_ns(b.graph, b.steps)), b_run_(b.trace), b_causes_(causes_of(b_run_)),
        fresh_(b_causes_, b.graph, a.trace, b.trace) {
    diff.change_ns = diff.b.step_ns - diff.a.step_ns;
    diff.error_ns = std::hypot(diff.a.error_ns, diff.b.error_ns);
    diff.sure = is_sure(diff.change_ns, diff.error_ns) || cells_are_sure();
    diff.independent = pairs_.independent();
  }

  void add_replayed() {
    const DiffMatch match = match_operations(a_.graph, b_.graph, a_.trace, b_.trace, pairs_.pair_of(), a_.usual);
    diff_.matched = match.matched;
    diff_.unmatched = match.unmatched;
    diff_.unused = match.unused;
    DiffGroups groups =
        group_operations(b_.graph, match.a_times, b_.usual, kMaxDiffGroups, [&](uint32_t op) { return fresh_.of(op); });
    const Replayed replayed = replay_groups(b_.graph, match.a_times, groups, pairs_);
    add_schedule(replayed.summed);
    add_groups(match.a_times, groups, replayed);
  }

  // Time between steps is not replayed: what was recorded is its effect.
  void add_gaps() {
    std::map<std::pair<bool, std::string>, std::pair<double, double>> between;  // by (sometimes, name): A's, B's
    for (const GapTime& gap : gap_times(a_.periods)) between[{gap.sometimes, gap.name}].first += gap.mean_ns;
    for (const GapTime& gap : gap_times(b_.periods)) between[{gap.sometimes, gap.name}].second += gap.mean_ns;
    const double error_ns = std::hypot(gap_error(a_.periods), gap_error(b_.periods));
    for (const auto& [key, ns] : between) {
      DiffGroup group;
      group.cause = DiffCause::kBetween;
      std::tie(group.sometimes, group.type) = key;
      group.count = b_.periods.gaps.size();
      std::tie(group.a_ns, group.b_ns) = ns;
      add_recorded(std::move(group), key.first ? 0 : error_ns, key.first);
    }
  }

  void add_long_steps() {
    if (a_.long_ns == 0 && b_.long_ns == 0) return;
    DiffGroup group;
    group.cause = DiffCause::kLong;
    group.a_ns = a_.long_ns, group.b_ns = b_.long_ns;
    group.count = diff_.b.left_out;
    if (b_.long_ns > a_.long_ns) explain_long_steps(group);
    add_recorded(std::move(group), 0, true);
  }

  // Makes one group of the work of one kind where it changed on all stages alike.
  void join_stages() {
    std::map<CellKind, std::vector<size_t>> of_kind;
    std::set<int32_t> stages;
    std::set<CellKind> kinds;
    for (uint32_t op = 0; op < b_.graph.size(); ++op)
      if (is_compute(b_.graph.kind[op])) stages.insert(b_.graph.stage(op)), kinds.insert(b_.graph.kind[op]);
    std::vector<DiffGroup>& groups = diff_.groups;
    for (size_t i = 0; i < groups.size(); ++i)
      if (const DiffGroup& g = groups[i];
          g.cause == DiffCause::kCompute && g.what.empty() && g.part == kUnknown && g.stage != kUnknown && g.a_ns > 0)
        of_kind[g.kind].push_back(i);
    std::erase_if(of_kind, [&](const auto& one) {
      constexpr double kAlike = 0.5;
      auto changes = mapped<double>(one.second, [&](const size_t i) { return groups[i].b_ns / groups[i].a_ns - 1; });
      const auto [min, max] = std::minmax_element(changes.begin(), changes.end());
      const bool longer = *min >= kMinDiffShare && *min >= kAlike * *max;
      const bool shorter = *max <= -kMinDiffShare && *max <= kAlike * *min;
      return changes.size() < 3 || changes.size() != stages.size() || !(longer || shorter);
    });
    std::set<size_t> joined;
    if (of_kind.size() == kinds.size()) return;  // all work changed, and not that of one kind
    for (const auto& [kind, list] : of_kind) {
      DiffGroup all = groups[list.front()];
      all.stage = kUnknown, all.what = words("diff.what.stages", Args().set("kind", kind_words(kind)));
      all.a_ns = all.b_ns = all.effect_ns = all.error_ns = all.per_rank = 0, all.count = 0;
      for (const size_t i : list) {
        const DiffGroup& one = groups[i];
        all.a_ns += one.a_ns * one.count, all.b_ns += one.b_ns * one.count, all.count += one.count;
        all.effect_ns += one.effect_ns, all.error_ns = std::hypot(all.error_ns, one.error_ns);
        all.per_rank = std::max(all.per_rank, one.per_rank), all.certain = all.certain && one.certain;
      }
      all.a_ns /= all.count, all.b_ns /= all.count;
      all.sure = is_sure(all.effect_ns, all.error_ns);
      groups[list.front()] = std::move(all);
      joined.insert(list.begin() + 1, list.end());
    }
    size_t at = 0;
    std::erase_if(groups, [&](const DiffGroup&) { return joined.contains(at++); });
  }

  // Sorts the groups and adds what the replays do not explain.
  void finish() {
    std::vector<DiffGroup>& groups = diff_.groups;
    join_stages();
    const auto first = groups.begin() + (!groups.empty() && groups[0].cause == DiffCause::kSchedule);
    std::stable_sort(first, groups.end(), [](const DiffGroup& x, const DiffGroup& y) {
      return std::tuple(x.cause == DiffCause::kMore, -std::abs(x.effect_ns)) <
             std::tuple(y.cause == DiffCause::kMore, -std::abs(y.effect_ns));
    });
    diff_.sure = diff_.sure || groups_are_sure(diff_);
    groups.push_back(
        {.count = diff_.unmatched, .effect_ns = diff_.change_ns - explained_ns_, .error_ns = std::nan("")});
  }

 private:
  bool is_sure(double ns, double error_ns) const {
    return std::abs(ns) >= min_ns_ && beyond_noise(ns, error_ns, pairs_.independent());
  }

  // With few steps, whose scatter says little, the change is also sure if that of their cells adds up to far less.
  bool cells_are_sure() const {
    constexpr int64_t kFew = 3, kMany = 100;
    if (pairs_.independent() > kFew || std::isnan(diff_.error_ns)) return false;
    const double error_ns = std::hypot(diff_.error_ns, error_by_cells(a_), error_by_cells(b_));
    return std::abs(diff_.change_ns) >= min_ns_ && beyond_noise(diff_.change_ns, error_ns, kMany);
  }

  // The shape of B with A's times next to A.
  void add_schedule(const WorldTimes& summed) {
    const auto effect = pairs_.change(
        [&](size_t s) { return static_cast<double>(a_.graph.steps[pairs_.pair_of()[s]].span_ns); }, step_in(summed, 0));
    if (diff_.changes.empty() && !is_sure(effect.first, effect.second)) return;
    DiffGroup group;
    group.cause = DiffCause::kSchedule;
    add(std::move(group), effect);
  }

  void add_groups(const OpTimes& a_times, DiffGroups& groups, const Replayed& replayed) {
    const auto& [order, summed] = replayed;
    const size_t count = order.size();
    const Pauses pauses = pauses_of(b_.graph, b_.steps, a_times, groups);
    const auto sure = [&](double ns, double error_ns) { return is_sure(ns, error_ns); };
    const auto sure_pauses = [&](double ns, double error_ns) {
      return is_sure(ns, error_ns) || (pauses.certain && ns >= min_ns_ && ns > error_ns);
    };
    const std::vector<bool> merged = delays_together(groups, order, pairs_, summed, sure, sure_pauses,
                                                     pauses.any ? min_ns_ : std::numeric_limits<double>::infinity());
    const std::vector<std::vector<double>> changes = changes_of(b_.graph, b_.steps, a_times, groups, merged);
    DiffGroup together;
    together.cause = DiffCause::kDelay;
    for (size_t i = 0; i < count; ++i) {
      DiffGroup& group = groups.list[order[i]];
      tell_pauses(changes[order[i]], group);
      if (!merged[order[i]]) {
        add(std::move(group), pairs_.change(step_in(summed, i), step_in(summed, i + 1)), groups.named[order[i]]);
        continue;
      }
      together.count += group.count;
      together.a_ns += group.a_ns * group.count;
      together.b_ns += group.b_ns * group.count;
    }
    if (together.count == 0) return;
    together.a_ns /= together.count;
    together.b_ns /= together.count;
    tell_pauses(changes[count], together);
    add(std::move(together), pairs_.change([](size_t) { return 0.0; }, merged_effect(order, merged, summed)));
    DiffGroup& added = diff_.groups.back();
    added.sure = sure_pauses(added.effect_ns, added.error_ns);
  }

  void add(DiffGroup group, std::pair<double, double> effect, uint32_t named = kNoCause) {
    std::tie(group.effect_ns, group.error_ns) = effect;
    if (named != kNoCause) group.what = fresh_.what(named);
    // A cause of which B is certain is not random here, even if it is in some steps only.
    group.certain = fresh_.is_certain(group, named);
    const bool sure_pauses = group.paused >= kMinPauses && group.pause_ns >= kLongPause * compute_ns_ &&
                             group.effect_ns >= min_ns_ && group.effect_ns > group.error_ns;
    group.sure =
        is_sure(group.effect_ns, group.error_ns) || sure_pauses || (group.certain && group.effect_ns >= min_ns_);
    if (group.part != kUnknown) group.rank = b_.trace.parts[group.part].rank;
    explained_ns_ += group.effect_ns;
    name_link(group);
    diff_.groups.push_back(std::move(group));
  }

  // Names delays after the link whose messages cause them, according to B's own causes.
  void name_link(DiffGroup& group) const {
    if (group.cause != DiffCause::kDelay || group.stage == kUnknown || !group.type.empty()) return;
    for (const Cause& cause : b_causes_.causes) {
      const Place& link = cause.place();
      if (link.kind == PlaceKind::kLink && !link.both_ways && link.stage == group.stage &&
          group.effect_ns <= 2 * cause.price.lost_ns)
        group.from_stage = link.from_stage, group.guessed = !cause.or_else.empty();
    }
  }

  void add_recorded(DiffGroup group, double error_ns, bool certain) {
    group.effect_ns = group.b_ns - group.a_ns;
    group.error_ns = error_ns;
    group.sure = certain ? std::abs(group.effect_ns) >= min_ns_ : is_sure(group.effect_ns, error_ns);
    explained_ns_ += group.effect_ns;
    if (group.effect_ns != 0) diff_.groups.push_back(std::move(group));
  }

  // Explains B's longest step or, if its causes explain all long steps, the largest of these causes.
  void explain_long_steps(DiffGroup& group) const {
    const std::vector<LongStep>& steps = b_causes_.long_steps;
    const auto longest = std::ranges::max_element(steps, {}, &LongStep::excess_ns);
    if (longest != steps.end()) {
      group.why = long_reason(b_.trace, *longest).text;
      group.step = longest->step;
      group.stage = longest->stage, group.from_stage = longest->from_stage;
      group.part = longest->part;
      if (group.part != kUnknown) group.rank = b_.trace.parts[group.part].rank;
      return;
    }
    if (b_causes_.causes.empty()) return;
    const Cause& largest =
        *std::ranges::max_element(b_causes_.causes, {}, [](const Cause& x) { return x.price.lost_ns; });
    if (!largest.kind->of_events) return;
    group.why = words(largest.place().kind == PlaceKind::kHost ? "diff.long.pauses" : "diff.long.messages");
    int64_t longest_ns = -1;
    for (size_t s = 0; s < b_.graph.steps.size(); ++s)
      if (!b_.usual[s] && b_.graph.steps[s].span_ns > longest_ns)
        longest_ns = b_.graph.steps[s].span_ns, group.step = b_.graph.steps[s].step;
  }

  const Side &a_, &b_;
  RunDiff& diff_;
  const Pairs pairs_;
  const double min_ns_;      // smaller effects are not reported
  const double compute_ns_;  // of B's mean compute operation
  const Run b_run_;
  const CauseList& b_causes_;
  const NewCauses fresh_;
  double explained_ns_ = 0;
};

}  // namespace

Result<RunDiff> diff_runs(const Trace& a_whole, const Trace& b_whole) {
  RunDiff diff;
  const std::optional<Trace> a_shared = without_unshared(a_whole, b_whole, "A", diff.notes);
  const std::optional<Trace> b_shared = without_unshared(b_whole, a_whole, "B", diff.notes);
  const Trace &a_trace = a_shared ? *a_shared : a_whole, &b_trace = b_shared ? *b_shared : b_whole;
  TRY(a, side_of(a_trace, "A", diff.notes));
  TRY(b, side_of(b_trace, "B", diff.notes));
  describe_shapes(a_trace, a->graph, b_trace, b->graph, diff);
  diff.a = described(*a, std::move(diff.a));
  diff.b = described(*b, std::move(diff.b));
  Differ differ(*a, *b, diff);
  differ.add_replayed();
  differ.add_gaps();
  differ.add_long_steps();
  differ.finish();
  return diff;
}

}  // namespace stageline
