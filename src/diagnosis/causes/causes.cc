#include "diagnosis/causes/causes.h"

#include "diagnosis/causes/search.h"
#include "pipeline/sums/pipeline_sums.h"

namespace stageline {
namespace {

// Mean time of the shortest kind of compute cell.
double shortest_kind_ns(const StepGraph& graph) {
  struct Sum {
    double ns = 0, count = 0;
  };
  std::array<Sum, UINT8_MAX + 1> kinds;
  for (uint32_t op = 0; op < graph.size(); ++op)
    if (Sum& kind = kinds[static_cast<uint8_t>(graph.kind[op])]; is_compute(graph.kind[op]))
      kind.ns += graph.dur_ns[op], ++kind.count;
  double min = 0;
  for (const Sum& kind : kinds)
    if (kind.count > 0 && (min == 0 || kind.ns / kind.count < min)) min = kind.ns / kind.count;
  return min;
}

// Returns true when ranks are missing, and those that were read show when steps begin and end: the first stage, in
// which steps begin, and most of the others.
bool is_mostly_read(const RunCoverage& coverage, const StepGraph& graph) {
  std::set<std::pair<int32_t, int32_t>> read;  // replica, stage
  bool first = false;
  for (uint32_t op = 0; op < graph.size(); ++op)
    if (is_compute(graph.kind[op])) read.emplace(graph.dp(op), graph.stage(op)), first |= graph.stage(op) == 0;
  const int64_t all = int64_t{coverage.stages()} * std::max(graph.dp_count, 1);
  return first && std::ssize(read) < all && 2 * std::ssize(read) > all;
}

// Where only a small part of the run was read, the trace does not show what the rest did between steps.
bool knows_periods(const RunCoverage& coverage, const StepGraph& graph) {
  return ((coverage.whole() && !coverage.lacks_end()) || is_mostly_read(coverage, graph)) &&
         std::ranges::any_of(graph.kind, [](CellKind kind) { return is_backward(kind); });
}

// Finds the steps that count, and fills what the list says of all steps.
CountedSteps count_steps(const StepGraph& graph, const PipelineSums& sums, const StepMeans& means, CauseList& list) {
  CountedSteps steps;
  steps.span_ns = means.span_ns;
  for (const GraphStep& step : graph.steps) {
    steps.counts.push_back(step.counts && !sums.is_outlier(step.step));
    steps.complete.push_back(!sums.is_incomplete(step.step));
    steps.weight.push_back(steps.complete.back() ? 1 : 0);
    if (steps.counts.back()) steps.usual_ns.push_back(step.span_ns);
    list.step_numbers.push_back(step.step);
  }
  list.steps = steps.usual_ns.size();
  list.all_steps = means.all.steps;
  if (!graph.steps.empty()) list.first_step = graph.steps.front().step;
  list.mean_of_steps = list.steps;
  list.gap_ns = means.usual.gap_ns;
  list.step_ns = means.usual.period_ns();
  list.wall_ns = means.all.period_ns();
  list.error_ns = standard_error(steps.usual_ns);
  const bool forwards_alone = std::ranges::none_of(graph.kind, [](CellKind kind) { return is_backward(kind); });
  if (forwards_alone && list.gap_ns < 0 && list.step_ns > 0) steps.pace = list.step_ns / means.usual.span_ns;
  return steps;
}

// Without work that takes time, every gap would look like a slow message.
bool works(const StepGraph& graph) {
  for (size_t i = 0; i < graph.size(); ++i)
    if (is_compute(graph.kind[i]) && graph.dur_ns[i] > 0) return true;
  return false;
}

// Times of operations without the causes that were kept. The reason of one long step may be in a replica that is held.
OpWorld world_without(const Search& search, const Kept& kept) {
  std::shared_ptr<const CauseWorlds> all(std::shared_ptr<void>(), &search.model);
  if (all->holds_any()) all = std::make_shared<const CauseWorlds>(search.scene, std::vector<bool>());
  return [&kept, all](uint32_t op, double& dur, double& delay) { all->operation(op, kept.gone, dur, delay); };
}

// It is unknown which of two or three steps is usual, so all of them count. Where the longest is far longer than the
// shortest even without the causes, finds the reason.
void compare_few_steps(const Search& search, const Kept& kept, const GoneTogether& together) {
  const std::vector<GraphStep>& steps = search.scene.graph.steps;
  if (steps.size() < 2 || steps.size() > kMaxFewSteps || !search.steps.all()) return;
  std::vector<double> rest_ns;
  for (size_t s = 0; s < steps.size(); ++s)
    rest_ns.push_back(steps[s].span_ns - together.times.ns(s, 0) + together.times.ns(s, 1));
  const auto [shortest, longest] = std::ranges::minmax_element(rest_ns);
  const size_t from = shortest - rest_ns.begin(), to = longest - rest_ns.begin();
  const bool even = *longest < kOutlierStep * *shortest;
  search.list.evens_out = even && !kept.gone.empty();
  if (even) return;
  LongStep step;
  step.step = steps[to].step, step.usual_step = steps[from].step;
  step.span_ns = steps[to].span_ns, step.usual_ns = steps[from].span_ns, step.excess_ns = *longest - *shortest;
  search.list.uneven = {step};
  std::vector<bool> usual(steps.size(), false);
  usual[from] = true;
  explain_long_steps(search.scene, world_without(search, kept), usual, {to}, search.list.uneven);
}

// Lets the complete steps between whose lengths that of step `s` is stand for it, each the more the nearer it is.
// Returns the gain of world 1 that they have then.
double stand_in(CountedSteps& steps, size_t s, const WorldTimes& times, double limit_ns) {
  size_t below = SIZE_MAX, above = SIZE_MAX;
  for (size_t c = 0; c < steps.complete.size(); ++c) {
    if (!steps.complete[c]) continue;
    const bool longer = steps.span_ns[c] > steps.span_ns[s];
    size_t& next = longer ? above : below;
    if (next == SIZE_MAX || (steps.span_ns[c] < steps.span_ns[next]) == longer) next = c;
  }
  const auto gain = [&](size_t c) { return times.ns(c, 0) - times.ns(c, 1); };
  if (below == SIZE_MAX) {  // what it is shorter by is time that the causes do not take there
    const double less = gain(above) > 0 ? std::min(1.0, (steps.span_ns[above] - steps.span_ns[s]) / gain(above)) : 0;
    steps.weight[above] += 1 - less, steps.without += less;
    return steps.span_ns[s] - (1 - less) * gain(above);
  }
  if (above == SIZE_MAX) above = below;
  const double apart = steps.span_ns[above] - steps.span_ns[below];
  const double part = apart > 0 ? (steps.span_ns[s] - steps.span_ns[below]) / apart : 0;
  const double rest_ns = steps.span_ns[s] - std::lerp(gain(below), gain(above), part);
  if (rest_ns < limit_ns) steps.weight[below] += 1 - part, steps.weight[above] += part;
  return rest_ns;
}

// A long step that the causes explain counts for their prices; where they do not explain it all, the rest has its own
// reason. Returns the times of the steps that count then.
std::vector<double> explain_rest_of_long_steps(const Search& search, const Kept& kept, const GoneTogether& together) {
  const StepGraph& graph = search.scene.graph;
  CountedSteps& steps = search.steps;
  CauseList& list = search.list;
  const bool incomplete_known = std::cmp_equal(list.all_steps, graph.steps.size());
  const auto rest_of = [&](size_t s) { return steps.span_ns[s] - together.times.ns(s, 0) + together.times.ns(s, 1); };
  const auto of_causes = [&](size_t s) { return together.times.ns(s, 0) - together.times.ns(s, 1); };
  std::vector<double> usual, of_causes_ns, explained = steps.usual_ns;
  for (size_t s = 0; s < graph.steps.size(); ++s)
    if (steps.counts[s]) usual.push_back(rest_of(s)), of_causes_ns.push_back(of_causes(s));
  const double scatter_ns = sample_std(usual), samples = usual.size(), usual_ns = median_of(std::move(usual));
  // Only its length shows that something happened in an incomplete step.
  const double apart = kT99.of(std::llround(samples)) * std::sqrt(1 + 1 / samples), noise_ns = apart * scatter_ns;
  const double long_ns = kOutlierStep * usual_ns;
  const double noticed_ns = samples > kMaxFewSteps ? std::min(usual_ns + noise_ns, long_ns) : long_ns;
  std::vector<size_t> unexplained;
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    if (steps.counts[s] || (!steps.complete[s] && !incomplete_known)) continue;
    const double span_ns = steps.span_ns[s], limit_ns = steps.complete[s] ? long_ns : noticed_ns;
    if (!steps.complete[s] && stand_in(steps, s, together.times, limit_ns) < limit_ns) {
      explained.push_back(span_ns);
      continue;
    }
    steps.weight[s] = 1;
    if (rest_of(s) < limit_ns) {
      steps.counts[s] = steps.complete[s];
      explained.push_back(span_ns);
      continue;
    }
    LongStep step;
    step.step = graph.steps[s].step;
    step.span_ns = span_ns, step.usual_ns = mean_of(steps.usual_ns), step.excess_ns = rest_of(s) - usual_ns;
    step.scatter_ns = std::isnan(scatter_ns) ? 0 : scatter_ns;
    list.long_steps.push_back(step);
    unexplained.push_back(s);
  }
  explain_long_steps(search.scene, world_without(search, kept), steps.counts, unexplained, list.long_steps);
  double found_ns = 0;  // in steps of which only the length was unusual
  for (size_t i = 0; i < unexplained.size(); ++i)
    if (!steps.complete[unexplained[i]] && list.long_steps[i].by != LongBy::kNothing)
      found_ns += list.long_steps[i].excess_ns;
  const bool little = found_ns < kMinLost * usual_ns * static_cast<double>(graph.steps.size());
  for (size_t i = unexplained.size(); i-- > 0;) {
    const size_t s = unexplained[i];
    const bool found = !little && list.long_steps[i].by != LongBy::kNothing;
    if (steps.complete[s] || found || rest_of(s) >= long_ns) continue;
    steps.weight[s] = 0;
    stand_in(steps, s, together.times, std::numeric_limits<double>::infinity());
    explained.push_back(steps.span_ns[s]);
    list.long_steps.erase(list.long_steps.begin() + static_cast<ptrdiff_t>(i));
  }
  for (LongStep& step : list.long_steps) {
    const bool of_all = step.by == LongBy::kAll;
    // The other causes cost this step less than usual ones: its reason hides the difference. Without its reason, they
    // would take that time here too.
    const auto s = std::ranges::find(graph.steps, step.step, &GraphStep::step) - graph.steps.begin();
    const double hidden_ns = mean_of(of_causes_ns) - of_causes(s);
    step.lost_ns = of_all ? step.span_ns - step.usual_ns
                          : step.excess_ns - (hidden_ns > apart * sample_std(of_causes_ns) ? hidden_ns : 0);
    step.lost_scatter_ns = of_all && steps.usual_ns.size() > 1 ? sample_std(steps.usual_ns) : step.scatter_ns;
  }
  return explained;
}

// Prices over all steps that count now.
void reprice(const Search& search, const PricedSuspects& priced, const Kept& kept,
             const std::vector<double>& explained) {
  search.list.step_ns = mean_of(explained) + search.list.gap_ns;
  search.list.mean_of_steps = explained.size();
  for (size_t i = 0; i < kept.taken.size(); ++i) {
    CausePrice& price = search.list.causes[i].price;
    const PricedSuspects::Worlds& of = priced.worlds[kept.taken[i]];
    price.lost_ns = search.gain_of_all(priced.times, 0, of.without);
    if (of.evened > 0 && !price.unmovable) price.saving_ns = search.gain_of_all(priced.times, 0, of.evened);
  }
}

// Finds what causes cost together, and how far all prices may be off.
void price_groups(const Search& search, const GoneTogether& together, Kept& kept) {
  CauseList& list = search.list;
  for (const GoneTogether::Group& group : together.groups)
    for (const size_t i : group.causes) {
      list.causes[i].price.joint_ns = search.gain_of_all(together.times, 0, group.world);
      list.causes[i].price.joint_error_ns = search.gain(together.times, 0, group.world).error_ns;
    }
  if (!kept.gone.empty()) {
    const Gain of_all = search.gain(together.times, 0, 1);
    list.together_ns = of_all.ns, list.together_error_ns = of_all.error_ns;
  }
  double rest_ns = 0, counted = 0;
  for (size_t s = 0; s < search.steps.counts.size(); ++s)
    if (search.steps.counts[s]) rest_ns += search.scene.graph.steps[s].span_ns - together.times.ns(s, 0), ++counted;
  rest_ns /= std::max(counted, 1.0);
  kept.lines.push_back({search.model.holds_any() ? "unread" : "rest", "", CellKind::kOther, rest_ns});
  // No price is more certain than the replays are.
  for (size_t i = 0; i < kept.taken.size(); ++i)
    list.causes[i].price.open_ns = std::hypot(list.causes[i].price.open_ns, rest_ns);
}

// Adds the causes outside the replay; those that are not named are lines of the breakdown.
void add_known(const Search& search, const KnownFacts& facts, std::vector<AccountLine>& lines) {
  CauseList& list = search.list;
  std::vector<Cause> known;
  for (const CauseKind* kind : cause_kinds())
    if (kind->known && (kind->measured == Measured::kInferred || !list.unpriced)) kind->known(facts, known);
  for (Cause& cause : known) {
    const CausePrice price = cause.price;
    const bool is_line = cause.kind->measured == Measured::kRecorded;
    const AccountLine line = is_line ? line_of(cause) : AccountLine{};
    const bool named = !cause.kind->judge || cause.kind->judge(cause, search.facts) == CauseUse::kCause;
    if (!named || !take_known(search, cause)) {
      if (is_line) lines.push_back(line);
      continue;
    }
    list.together_ns += price.lost_ns;
    list.together_error_ns = std::hypot(list.together_error_ns, price.error_ns());
  }
}

// Makes all lines add up to the step.
void close_account(const Search& search, const GoneTogether& together, bool any_gone, std::vector<AccountLine> lines) {
  CauseList& list = search.list;
  list.schedule_ns = list.step_ns - list.together_ns;
  for (const AccountLine& line : lines) list.schedule_ns -= line.ns;
  for (const Cause& cause : list.causes)  // what only a few gaps lost is not part of the usual step
    if (cause.price.outside) list.schedule_ns += cause.price.lost_ns;
  if (any_gone) list.together_ns += search.gain_of_all(together.times, 0, 1) - search.gain(together.times, 0, 1).ns;
  for (const LongStep& step : list.long_steps)
    list.together_ns += step.excess_ns / std::max<int64_t>(list.all_steps, 1);
  list.left = std::move(lines);
}

// The extra time of cells decided what is named. It is not what the run loses.
void forget_prices(CauseList& list) {
  list.together_ns = list.together_error_ns = 0;
  list.doubtful.clear();
  for (Cause& cause : list.causes) {
    cause.price = {.longer_ns = cause.price.lost_ns};
    cause.lost_course = {};
    if (cause.together.role != Together::Role::kEqual) cause.together = {};
  }
}

void sort_list(CauseList& list) {
  sort_causes(list.causes);
  for (std::vector<Cause>* others : {&list.doubtful, &list.hidden})
    sort_stably(*others, std::greater(), [](const Cause& cause) { return cause.price.lost_ns; });
}

// Returns true when messages of two places share a link in the same direction.
bool share_link(const Place& a, const Place& b) {
  if (a.kind != PlaceKind::kLink || b.kind != PlaceKind::kLink) return false;
  if (a.replica != b.replica && a.replica != kUnknown && b.replica != kUnknown) return false;
  const bool same = a.from_stage == b.from_stage && a.stage == b.stage;
  const bool back = a.from_stage == b.stage && a.stage == b.from_stage;
  return same || (back && (a.both_ways || b.both_ways));
}

// A link has one cause: its messages and the cells that wait for them may both show it, and some may be late on a link
// that is slow. The suspicion that costs more says it, and both are gone without it.
void join_links(const Search& search, std::vector<Suspect>& suspects) {
  std::vector<CauseWorlds::World> worlds(1);
  std::vector<size_t> world_of(suspects.size(), 0);  // 0: it shares its link with no other
  for (size_t i = 0; i < suspects.size(); ++i)
    for (size_t j = 0; j < suspects.size() && world_of[i] == 0; ++j) {
      if (i == j || !share_link(suspects[i].cause.place(), suspects[j].cause.place())) continue;
      world_of[i] = worlds.size();
      worlds.push_back({suspects[i].without});
    }
  if (worlds.size() == 1) return;
  const WorldTimes times = search.model.replay(worlds);
  for (size_t i = 0; i < suspects.size(); ++i)
    for (size_t j = suspects.size(); --j > i;) {
      if (!share_link(suspects[i].cause.place(), suspects[j].cause.place())) continue;
      if (search.gain(times, 0, world_of[i]).ns < search.gain(times, 0, world_of[j]).ns) {
        std::swap(suspects[i], suspects[j]);
        std::swap(world_of[i], world_of[j]);
      }
      suspects[i].without = both(suspects[i].without, suspects[j].without);
      suspects.erase(suspects.begin() + static_cast<ptrdiff_t>(j));
      world_of.erase(world_of.begin() + static_cast<ptrdiff_t>(j));
    }
}

// Returns for each replica whether no simulation waits for it: stages of it were not read, and nothing in it is
// suspected. A slow rank in such a replica costs what the others wait for it, and so do late events. Empty if there is
// none.
std::vector<bool> held_replicas(const CauseScene& scene, const std::vector<Suspect>& suspects) {
  const StepGraph& g = scene.graph;
  if (scene.coverage.whole() || !scene.coverage.any_whole_replica() || g.source == GraphSource::kNone) return {};
  std::map<int32_t, int32_t> replica_of;  // by rank
  std::vector<bool> held(g.dp_count, false);
  for (const Part& part : scene.trace.parts)
    if (std::cmp_less(part.dp, g.dp_count) && part.dp >= 0)
      replica_of[part.rank] = part.dp, held[part.dp] = !scene.coverage.whole_replica(part.dp);
  for (const Suspect& suspect : suspects) {
    std::set<int32_t> in;
    for (const Place& place : suspect.cause.places) {
      if (place.replica != kUnknown) in.insert(place.replica);
      for (const int32_t rank : place.ranks)
        if (const auto at = replica_of.find(rank); at != replica_of.end()) in.insert(at->second);
    }
    if (in.size() == 1 && *in.begin() >= 0 && *in.begin() < g.dp_count) held[*in.begin()] = false;
    if (suspect.cause.kind->of_events)
      scene.each_op([&](uint32_t op, size_t) {
        double dur = g.dur_ns[op], delay = g.delay_ns[op];
        suspect.without.apply({op, op + 1, 0, 1, 1, &dur, &delay});
        const bool less = dur + delay < g.dur_ns[op] + g.delay_ns[op];
        if (const auto dp = static_cast<size_t>(g.dp(op)); less && dp < held.size()) held[dp] = false;
      });
  }
  return std::ranges::find(held, true) == held.end() ? std::vector<bool>() : held;
}

CauseList find_causes(const Run& run, const StepGraph& graph) {
  CauseList list;
  list.unpriced = graph.source == GraphSource::kNone;
  const RunCoverage& coverage = coverage_of(run);
  const TheoryRun& theory = theory_of(run);
  const StepPeriods no_periods{};
  const StepPeriods& periods = knows_periods(coverage, graph) ? periods_of(run) : no_periods;
  CountedSteps steps = count_steps(graph, sums_of(run), step_means_of(run), list);
  list.not_analysable = coverage.not_analysable();
  list.replicas_unread = coverage.replicas_unread() > 0;
  if (list.not_analysable || !works(graph)) return list;
  // The scene refers to the steps that count, which change when long steps are explained.
  const PeerWork peers(run.trace(), graph, steps.counts);
  CauseScene scene{
      run.trace(), graph, steps.counts, coverage, CellTimes(run.trace(), graph, steps.counts, peers.usual_work()),
      peers};
  scene.two_ways = theory.recognition.recognised && theory.recognition.best().layout == ChunkLayout::kBidirectional;
  std::vector<Suspect> suspects;
  for (const CauseKind* kind : cause_kinds())
    if (kind->suspect && (kind->of_work || !list.unpriced)) kind->suspect(scene, suspects);
  if (list.unpriced)
    for (Suspect& suspect : suspects) suspect.evened = suspect.otherwise = {};
  JudgeFacts facts{coverage, periods, list.step_ns, shortest_kind_ns(graph) * scene.times.chunks()};
  CauseWorlds model(scene, held_replicas(scene, suspects));
  const Search search{scene, model, facts, steps, list};
  join_links(search, suspects);
  const PricedSuspects priced = price_each(search, std::move(suspects));
  Kept kept = judge_each(search, priced);
  const KnownFacts known{run.trace(), graph,   steps.counts,      theory,
                         coverage,    periods, list.step_numbers, facts.shortest_ns};
  if (list.unpriced) {
    add_known(search, known, kept.lines);
    sort_list(list);
    forget_prices(list);
    return list;
  }
  look_behind(search, priced, kept);
  const GoneTogether together = price_together(search, priced, kept);
  compare_few_steps(search, kept, together);
  if (!steps.all()) reprice(search, priced, kept, explain_rest_of_long_steps(search, kept, together));
  facts.step_ns = list.step_ns;
  price_groups(search, together, kept);
  account_for_rest(scene, model, kept.gone, steps.counts, kept.lines);
  add_known(search, known, kept.lines);
  // Time between steps is in the mean step, even if it is unknown what the rest of the run did then.
  if (!knows_periods(coverage, graph) && list.gap_ns > 0)
    kept.lines.push_back({"between", "", CellKind::kOther, list.gap_ns});
  close_account(search, together, !kept.gone.empty(), std::move(kept.lines));
  sort_list(list);
  return list;
}

struct CausesFact {
  using Value = CauseList;
  static Value make(const Run& run) {
    const RunGraph& made = graph_of(run, LaunchRule::kInOrder);
    // No conditional argument: it would copy the graph, which takes a quarter of the memory of a large run.
    return made.graph ? find_causes(run, *made.graph) : find_causes(run, graph_without_waits(run.trace()));
  }
};

}  // namespace

const CauseList& causes_of(const Run& run) { return run.fact<CausesFact>(); }

}  // namespace stageline
