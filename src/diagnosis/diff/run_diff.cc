#include "diagnosis/diff/run_diff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "base/number.h"
#include "diagnosis/causes/beyond_noise.h"
#include "diagnosis/causes/cause_kind.h"
#include "diagnosis/causes/causes.h"
#include "diagnosis/causes/gap_times.h"
#include "diagnosis/causes/long_step_words.h"
#include "diagnosis/diff/diff_groups.h"
#include "diagnosis/diff/diff_match.h"
#include "diagnosis/diff/diff_shape.h"
#include "model/statistics.h"
#include "pipeline/measure/step_periods.h"
#include "pipeline/replay/step_graph.h"
#include "pipeline/sums/course.h"
#include "pipeline/sums/pipeline_sums.h"

namespace stageline {
namespace {

struct Side {
  const Trace& trace;
  StepGraph graph;
  std::vector<bool> usual;      // for each step of the graph: it is no outlier
  std::vector<size_t> steps;    // indexes of the usual steps
  std::vector<double> step_ns;  // their times
  StepPeriods periods;
  double long_ns = 0;  // what outliers take beyond the usual steps, as a mean over all steps
};

Result<Side> side_of(const Trace& trace, const char* name, Diagnostics& notes) {
  Diagnostics own;
  const PipelineSums sums = pipeline_sums(trace);
  Result<StepGraph> graph = build_step_graph(trace, sums, own, LaunchRule::kInOrder);
  if (!graph) {
    Error e = graph.error();
    e.what = std::string("run ") + name + ": " + e.what;
    return e;
  }
  for (const Diagnostic& d : own.items())
    notes.add({d.name + (*name == 'A' ? ".a" : ".b"), d.severity,
               words("diff.note", Args().set("run", std::string(name)).set("note", d.message)), 1, d.first});
  Side side{trace, std::move(*graph), {}, {}, {}, step_periods(trace, sums), 0};
  for (size_t s = 0; s < side.graph.steps.size(); ++s) {
    side.usual.push_back(!sums.is_outlier(side.graph.steps[s].step));
    if (!side.usual.back()) continue;
    side.steps.push_back(s);
    side.step_ns.push_back(static_cast<double>(side.graph.steps[s].span_ns));
  }
  const double usual_ns = mean_of(side.step_ns);
  for (size_t s = 0; s < side.graph.steps.size(); ++s)
    if (!side.usual[s])
      side.long_ns +=
          (static_cast<double>(side.graph.steps[s].span_ns) - usual_ns) / static_cast<double>(side.graph.steps.size());
  return side;
}

// Standard error of the mean of values that are measured once per step. That every third step is slow, or all from one
// step on, is no chance; only what such a shape leaves unexplained is.
double standard_error(const std::vector<double>& values, int64_t independent) {
  const Course course = course_of(values);
  const bool shaped = course.varies() && course.kind != CourseKind::kSome;
  return (shaped ? course.noise : sample_std(values)) / std::sqrt(static_cast<double>(independent));
}

// Pairs of steps (A's and B's), and mean changes over them.
class Pairs {
 public:
  Pairs(const Side& a, const Side& b) : b_(b), pair_of_(b.graph.steps.size(), -1) {
    for (size_t k = 0; k < b.steps.size(); ++k)
      pair_of_[b.steps[k]] = static_cast<int64_t>(a.steps[k * a.steps.size() / b.steps.size()]);
    independent_ = static_cast<int64_t>(std::min(a.steps.size(), b.steps.size()));
  }
  const std::vector<int64_t>& pair_of() const { return pair_of_; }
  // Number of pairs that share no step, which is what a standard error may count.
  int64_t independent() const { return independent_; }

  // Mean of to(s) − from(s) over the compared steps of B, and its standard error.
  template <class From, class To>
  std::pair<double, double> change(const From& from, const To& to) const {
    std::vector<double> changes;
    for (const size_t s : b_.steps) changes.push_back(to(s) - from(s));
    return {mean_of(changes), standard_error(changes, independent_)};
  }

 private:
  const Side& b_;
  std::vector<int64_t> pair_of_;
  int64_t independent_ = 0;
};

// How much the groups named by `merged` change a step together. `order` gives the groups in the order of worlds.
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
  // That there are pauses is no chance; only their number per step is, so what they cost scatters, and with it the
  // change. The same holds for a device that is slow in some steps.
  double paused_ns = 0;
  for (const DiffGroup& group : diff.groups)
    paused_ns += group.sure && (group.paused > 0 || group.certain) ? group.effect_ns : 0;
  const double errors = paused_ns / diff.change_ns >= 0.5 ? 1 : kSureChangeErrors;
  return std::abs(diff.change_ns) >= errors * diff.error_ns;
}

constexpr double kScattered = 0.25;  // least share of the delays' change that must be on stages where it is not sure

bool of_stage(const DiffGroup& group) { return group.cause == DiffCause::kDelay && group.type.empty(); }

// Whether the delays that were added, on all stages, are pauses.
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

// For each group, whether it is one of the stages' delays that are told as one. They are where much of them is on
// stages on which they are within chance, and only together beyond it. A pause hits a stage only now and then, so that
// hardly one stage alone has enough of them. What unsure stages hold must reach `min_pauses_ns` or kScattered of all;
// `min_pauses_ns` is infinite where delays are no pauses.
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
  const auto members = std::count(merged.begin(), merged.end(), true);
  const bool scattered =
      unsure > 0 && members > 1 && std::abs(unsure_ns) >= std::min(kScattered * std::abs(ns), min_pauses_ns);
  return scattered && sure_together(ns, error_ns) ? merged : none;
}

// Causes that B has and A has not; each names its operations here too, wherever they ran.
class NewCauses {
 public:
  NewCauses(const CauseList& b, const StepGraph& graph, const Trace& a_trace, const Trace& b_trace) : graph_(graph) {
    if (b.causes.empty()) return;
    const Run a_run(a_trace);
    const std::vector<Cause>& known = causes_of(a_run).causes;
    for (const Cause& cause : b.causes)
      if (std::none_of(known.begin(), known.end(), [&](const Cause& c) { return is_same(c, cause); }))
        causes_.push_back(&cause);
    // A cause that is everywhere does not say where work became longer, if there are other new causes.
    const bool alone = std::none_of(causes_.begin(), causes_.end(), [](const Cause* c) {
      return c->kind->of_work && !c->places.empty() && !c->together.follows();
    });
    for (uint32_t i = 0; i < causes_.size(); ++i) {
      const Cause& c = *causes_[i];
      if (!c.kind->of_work || c.together.follows()) continue;
      if (c.places.empty() && alone && everywhere_ == kNoCause) everywhere_ = i;
      // Stages and ranks are reported stage by stage, which names them; but a whole replica has all stages.
      for (const Place& place : c.places) {
        if (place.kind == PlaceKind::kMicroBatches && place.first != kUnknown)
          for (int32_t mb = place.first; mb <= place.last; ++mb) by_micro_batch_.emplace(mb, i);
        if (place.kind != PlaceKind::kReplicas) continue;
        for (size_t part = 0; part < b_trace.parts.size(); ++part)
          if (std::find(place.ranks.begin(), place.ranks.end(), b_trace.parts[part].rank) != place.ranks.end())
            by_part_.emplace(static_cast<int32_t>(part), i);
      }
    }
  }

  uint32_t of(uint32_t op) const {
    if (const auto at = by_micro_batch_.find(graph_.micro_batch[op]); at != by_micro_batch_.end()) return at->second;
    if (const auto at = by_part_.find(graph_.part[op]); at != by_part_.end()) return at->second;
    return everywhere_;
  }
  const Cause& cause(uint32_t number) const { return *causes_[number]; }
  const std::vector<const Cause*>& list() const { return causes_; }

  Text what(uint32_t number) const {
    const Cause& c = *causes_[number];
    const Place& place = c.place();
    if (c.places.empty()) return words("diff.what." + std::string(c.kind->id));
    if (place.kind == PlaceKind::kMicroBatches)
      return words("diff.what.micro_batch", Args().set("number", int64_t{place.first}));
    if (c.price.otherwise_ns != 0) return words("diff.what.graded");
    return words("diff.what.replica", Args().set("replica", int64_t{place.replica}));
  }

 private:
  static bool is_same(const Cause& a, const Cause& b) { return a.kind == b.kind && same_place(a.place(), b.place()); }

  const StepGraph& graph_;
  std::vector<const Cause*> causes_;
  std::map<int32_t, uint32_t> by_micro_batch_, by_part_;
  uint32_t everywhere_ = kNoCause;
};

// Whether a cause is about the work of a stage, or of one rank of it.
bool is_about(const Cause& cause, const DiffGroup& group, const Trace& trace) {
  const Place& place = cause.place();
  if (!cause.kind->of_work || place.stage != group.stage) return false;
  if (place.kind == PlaceKind::kStage) return true;
  return place.kind == PlaceKind::kRanks &&
         (group.part == kUnknown || place.ranks.front() == trace.parts[group.part].rank);
}

}  // namespace

Result<RunDiff> diff_runs(const Trace& a_trace, const Trace& b_trace) {
  RunDiff diff;
  Result<Side> a_side = side_of(a_trace, "A", diff.notes);
  if (!a_side) return std::move(a_side).error();
  Result<Side> b_side = side_of(b_trace, "B", diff.notes);
  if (!b_side) return std::move(b_side).error();
  const Side &a = *a_side, &b = *b_side;
  const auto fill = [](const Side& side, DiffRun& run) {
    run.steps = static_cast<int64_t>(side.steps.size());
    run.left_out = static_cast<int64_t>(side.usual.size()) - run.steps;
    run.step_ns = mean_of(side.step_ns) + side.periods.mean_ns + side.long_ns;
    run.error_ns = standard_error(side.step_ns, run.steps);
  };
  describe_shapes(a_trace, a.graph, b_trace, b.graph, diff);
  fill(a, diff.a);
  fill(b, diff.b);
  const Pairs pairs(a, b);
  const double min_ns = kMinDiffShare * diff.a.step_ns;
  const auto sure = [&](double ns, double error_ns) {
    return std::abs(ns) >= min_ns && beyond_noise(ns, error_ns, pairs.independent());
  };
  diff.change_ns = diff.b.step_ns - diff.a.step_ns;
  diff.error_ns = std::hypot(diff.a.error_ns, diff.b.error_ns);
  diff.sure = sure(diff.change_ns, diff.error_ns);
  diff.independent = pairs.independent();

  const DiffMatch match = match_operations(a.graph, b.graph, a_trace, b_trace, pairs.pair_of(), a.usual);
  diff.matched = match.matched;
  diff.unmatched = match.unmatched;
  diff.unused = match.unused;
  const Run b_run(b_trace);
  const CauseList& b_causes = causes_of(b_run);
  const NewCauses fresh(b_causes, b.graph, a_trace, b_trace);
  DiffGroups groups =
      group_operations(b.graph, match.a_times, b.usual, kMaxDiffGroups, [&](uint32_t op) { return fresh.of(op); });

  // World g + 1 has B's times in group g only, and A's in all others.
  const size_t count = groups.list.size();
  const auto world = [&](uint32_t op, bool dur_of_b, bool delay_of_b, double& dur, double& delay) {
    dur = dur_of_b ? b.graph.dur_ns[op] : match.a_times.dur_ns[op];
    delay = delay_of_b ? b.graph.delay_ns[op] : match.a_times.delay_ns[op];
  };
  const WorldTimes alone =
      replay_worlds(b.graph, count + 1, [&](uint32_t op, size_t first, std::span<double> dur, std::span<double> delay) {
        for (size_t i = 0; i < dur.size(); ++i) {  // world 0 has only A's times
          const auto w = first + i;
          world(op, w == groups.of_dur[op] + size_t{1}, w == groups.of_delay[op] + size_t{1}, dur[i], delay[i]);
        }
      });
  const auto step_in = [](const WorldTimes& times, size_t w) {
    return [&times, w](size_t s) { return times.ns(s, w); };
  };
  std::vector<double> by_itself;
  for (size_t g = 0; g < count; ++g)
    by_itself.push_back(std::abs(pairs.change(step_in(alone, 0), step_in(alone, g + 1)).first));
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) { return by_itself[x] > by_itself[y]; });
  // Position of each group in that order; operations without a change have the last one.
  std::vector<size_t> place(count + 1, count);
  for (size_t i = 0; i < count; ++i) place[order[i]] = i;

  // Then group after group: world i has B's times in the groups before position i.
  const WorldTimes summed =
      replay_worlds(b.graph, count + 1, [&](uint32_t op, size_t first, std::span<double> dur, std::span<double> delay) {
        const size_t dur_place = place[groups.of_dur[op]], delay_place = place[groups.of_delay[op]];
        for (size_t i = 0; i < dur.size(); ++i)
          world(op, first + i > dur_place, first + i > delay_place, dur[i], delay[i]);
      });
  double reported = 0, compute_ns = 0, computed = 0;  // compute_ns: of the mean compute operation
  for (const size_t step : b.steps)
    for (uint32_t op = b.graph.steps[step].begin; op < b.graph.steps[step].end; ++op)
      if (is_compute(b.graph.kind[op])) compute_ns += b.graph.dur_ns[op], ++computed;
  compute_ns /= std::max(computed, 1.0);
  // Delays that B's own causes blame on a message are named after that link here too.
  const auto name_message = [&](DiffGroup& group) {
    if (group.cause != DiffCause::kDelay || group.stage == kUnknown || !group.type.empty()) return;
    for (const Cause& cause : b_causes.causes) {
      const Place& link = cause.place();
      if (link.kind == PlaceKind::kLink && !link.both_ways && link.stage == group.stage &&
          group.effect_ns <= 2 * cause.price.lost_ns)
        group.from_stage = link.from_stage, group.guessed = !cause.or_else.empty();
    }
  };
  // What a cause of B is certain of is no chance here, even if it is in some steps only.
  const auto is_certain = [&](const DiffGroup& group, uint32_t named) {
    if (group.cause != DiffCause::kCompute || !(group.effect_ns > group.error_ns)) return false;
    return std::any_of(fresh.list().begin(), fresh.list().end(), [&](const Cause* cause) {
      const bool own = named != kNoCause ? cause == &fresh.cause(named) : is_about(*cause, group, b_trace);
      return own && cause->certain && group.effect_ns <= 2 * cause->price.lost_ns;
    });
  };
  const auto add = [&](DiffGroup group, std::pair<double, double> effect, uint32_t named = kNoCause) {
    std::tie(group.effect_ns, group.error_ns) = effect;
    if (named != kNoCause) group.what = fresh.what(named);
    group.certain = is_certain(group, named);
    const bool sure_pauses = group.paused >= kMinPauses && group.pause_ns >= kLongPause * compute_ns &&
                             group.effect_ns >= min_ns && group.effect_ns > group.error_ns;
    group.sure = sure(group.effect_ns, group.error_ns) || sure_pauses || (group.certain && group.effect_ns >= min_ns);
    if (group.part != kUnknown) group.rank = b_trace.parts[group.part].rank;
    reported += group.effect_ns;
    name_message(group);
    diff.groups.push_back(std::move(group));
  };
  const auto shape = pairs.change(
      [&](size_t s) { return static_cast<double>(a.graph.steps[pairs.pair_of()[s]].span_ns); }, step_in(summed, 0));
  if (!diff.changes.empty() || sure(shape.first, shape.second)) {
    DiffGroup group;
    group.cause = DiffCause::kSchedule;
    add(std::move(group), shape);
  }
  const Pauses pauses = pauses_of(b.graph, b.steps, match.a_times, groups);
  const auto sure_pauses = [&](double ns, double error_ns) {
    return sure(ns, error_ns) || (pauses.certain && ns >= min_ns && ns > error_ns);
  };
  const std::vector<bool> merged = delays_together(groups, order, pairs, summed, sure, sure_pauses,
                                                   pauses.any ? min_ns : std::numeric_limits<double>::infinity());
  // Changes of the starts of each group of delays (the last entry: of those told as one), and of the durations of
  // messages.
  std::vector<std::vector<double>> changes(count + 1);
  for (const size_t step : b.steps)
    for (uint32_t op = b.graph.steps[step].begin; op < b.graph.steps[step].end; ++op) {
      if (const uint32_t g = groups.of_delay[op]; g < count && groups.list[g].cause == DiffCause::kDelay)
        changes[merged[g] ? count : g].push_back(b.graph.delay_ns[op] - match.a_times.delay_ns[op]);
      if (const uint32_t g = groups.of_dur[op]; g < count && groups.list[g].cause == DiffCause::kMessages)
        changes[g].push_back(b.graph.dur_ns[op] - match.a_times.dur_ns[op]);
    }
  DiffGroup together;
  together.cause = DiffCause::kDelay;
  for (size_t i = 0; i < count; ++i) {
    DiffGroup& group = groups.list[order[i]];
    tell_pauses(changes[order[i]], group);
    if (!merged[order[i]]) {
      add(std::move(group), pairs.change(step_in(summed, i), step_in(summed, i + 1)), groups.named[order[i]]);
      continue;
    }
    together.count += group.count;
    together.a_ns += group.a_ns * static_cast<double>(group.count);
    together.b_ns += group.b_ns * static_cast<double>(group.count);
  }
  if (together.count > 0) {
    together.a_ns /= static_cast<double>(together.count);
    together.b_ns /= static_cast<double>(together.count);
    tell_pauses(changes[count], together);
    add(std::move(together), pairs.change([](size_t) { return 0.0; }, merged_effect(order, merged, summed)));
    DiffGroup& merged_together = diff.groups.back();
    merged_together.sure = sure_pauses(merged_together.effect_ns, merged_together.error_ns);
  }
  // Time between steps and long steps are not replayed; what was recorded is the price.
  std::map<std::pair<bool, std::string>, std::pair<double, double>> between;  // by (sometimes, name): A's, B's
  for (const bool of_b : {false, true})
    for (const GapTime& gap : gap_times((of_b ? b : a).periods))
      (of_b ? between[{gap.sometimes, gap.name}].second : between[{gap.sometimes, gap.name}].first) += gap.mean_ns;
  const auto gap_error = [](const StepPeriods& periods) {
    std::vector<double> usual;
    for (size_t i = 0; i < periods.gaps.size(); ++i)
      if (!periods.is_long(i)) usual.push_back(periods.gaps[i].ns);
    return usual.size() > 1 ? standard_error(usual, static_cast<int64_t>(usual.size())) : 0.0;
  };
  const double gaps_error = std::hypot(gap_error(a.periods), gap_error(b.periods));
  const auto add_recorded = [&](DiffGroup group, double error_ns, bool certain) {
    group.effect_ns = group.b_ns - group.a_ns;
    group.error_ns = error_ns;
    group.sure = certain ? std::abs(group.effect_ns) >= min_ns : sure(group.effect_ns, error_ns);
    reported += group.effect_ns;
    if (group.effect_ns != 0) diff.groups.push_back(std::move(group));
  };
  for (const auto& [key, ns] : between) {
    DiffGroup group;
    group.cause = DiffCause::kBetween;
    std::tie(group.sometimes, group.type) = key;
    group.count = static_cast<int64_t>(b.periods.gaps.size());
    std::tie(group.a_ns, group.b_ns) = ns;
    add_recorded(std::move(group), key.first ? 0 : gaps_error, key.first);
  }
  if (a.long_ns != 0 || b.long_ns != 0) {
    DiffGroup group;
    group.cause = DiffCause::kLong;
    group.a_ns = a.long_ns, group.b_ns = b.long_ns;
    group.count = diff.b.left_out;
    if (b.long_ns > a.long_ns) {
      const std::vector<LongStep>& steps = b_causes.long_steps;
      const auto longest = std::max_element(
          steps.begin(), steps.end(), [](const LongStep& x, const LongStep& y) { return x.excess_ns < y.excess_ns; });
      if (longest != steps.end()) {
        const LongReason why = long_reason(b_trace, *longest);
        group.why = why.text;
        group.step = longest->step;
        group.stage = longest->stage, group.from_stage = longest->from_stage;
        group.part = longest->part;
        if (group.part != kUnknown) group.rank = b_trace.parts[group.part].rank;
      } else if (!b_causes.causes.empty()) {
        // All long steps are long for what the causes tell of the other steps too.
        const Cause& most =
            *std::max_element(b_causes.causes.begin(), b_causes.causes.end(),
                              [](const Cause& x, const Cause& y) { return x.price.lost_ns < y.price.lost_ns; });
        size_t longest_step = b.graph.steps.size();
        for (size_t s = 0; s < b.graph.steps.size(); ++s)
          if (!b.usual[s] &&
              (longest_step == b.graph.steps.size() || b.graph.steps[s].span_ns > b.graph.steps[longest_step].span_ns))
            longest_step = s;
        if (most.kind->of_events) {
          group.why = words(most.place().kind == PlaceKind::kHost ? "diff.long.pauses" : "diff.long.messages");
          if (longest_step < b.graph.steps.size()) group.step = b.graph.steps[longest_step].step;
        }
      }
    }
    add_recorded(std::move(group), 0, true);
  }
  const auto first = diff.groups.begin() + (!diff.groups.empty() && diff.groups[0].cause == DiffCause::kSchedule);
  std::stable_sort(first, diff.groups.end(), [](const DiffGroup& x, const DiffGroup& y) {
    return std::tuple(x.cause == DiffCause::kMore, -std::abs(x.effect_ns)) <
           std::tuple(y.cause == DiffCause::kMore, -std::abs(y.effect_ns));
  });
  diff.sure = diff.sure || groups_are_sure(diff);
  DiffGroup rest;
  rest.effect_ns = diff.change_ns - reported;
  rest.error_ns = std::nan("");
  rest.count = diff.unmatched;
  diff.groups.push_back(std::move(rest));
  return diff;
}

}  // namespace stageline
