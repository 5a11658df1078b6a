#include "diagnosis/causes/causes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "diagnosis/causes/beyond_noise.h"
#include "diagnosis/causes/cause_drafts.h"
#include "diagnosis/causes/order_cause.h"
#include "diagnosis/causes/period_causes.h"
#include "facts/period_facts.h"
#include "model/pipeline_sums.h"
#include "model/statistics.h"
#include "pipeline/measure/op_values.h"

namespace stageline {
namespace {

constexpr int64_t kLeastPauses = 3;   // so many are no chance, however they fall on steps
constexpr double kMuchOfStep = 0.05;  // of a step, that a stage costs to be told though nothing can be moved
constexpr size_t kMostHidden = 16;    // suspicions that are tried again without what was found

std::vector<CauseDraft> drafts_of(CauseScene& scene) {
  std::vector<CauseDraft> drafts;
  draft_positions(scene, drafts);
  draft_sequences(scene, drafts);
  draft_routing(scene, drafts);
  draft_slow_workers(scene, drafts);
  draft_slow_stages(scene, drafts);
  draft_all_slow(scene, drafts);
  const LateWorkers late = draft_delays(scene, drafts);
  draft_slow_links(scene, late, drafts);
  draft_tails(scene, drafts);
  return drafts;
}

// What is lost is less than it is worth saying; or evening out, where nothing more can be done, brings less than that.
// A stage that costs a twentieth of a step is told all the same: it is slow, whatever can be done about it.
bool costs_little(const Cause& c, const CauseList& list, bool evened) {
  const double least = kLeastLost * list.step_ns;
  return !(c.lost_ns >= least) || (evened && c.saving_ns < least && !c.unmovable);
}
bool is_unmovable(const Cause& c, const CauseList& list) {
  return c.kind == CauseKind::kSlowStage && c.saving_ns < kLeastLost * list.step_ns &&
         c.lost_ns >= kMuchOfStep * list.step_ns;
}

// A pause is none by chance: its length is far beyond what cells differ by, and only how many fall into a step varies.
// Nor are long sequences, of which forwards and backwards agree on every stage, or what its own search found certain.
bool may_be_chance(const Cause& c, const CauseList& list) {
  // That time was there: nothing was inferred.
  if (c.kind == CauseKind::kBetweenSteps || c.kind == CauseKind::kTail) return false;
  const bool counted = c.kind == CauseKind::kPauses || c.kind == CauseKind::kMessageTail ||
                       c.kind == CauseKind::kLateStarts || c.kind == CauseKind::kLongSequences;
  // Of what one step alone lost the error is as much as the mean.
  constexpr double kOneStep = 0.999;
  if (c.certain && c.lost_ns > 0 && c.lost_ns >= kOneStep * c.error_ns) return false;
  if (counted && c.count >= kLeastPauses && c.lost_ns > c.error_ns) return false;
  return !beyond_noise(c.lost_ns, c.error_ns, list.steps);
}

// Of the kinds of compute cells, the mean of the one that is shortest.
double shortest_kind_ns(const StepGraph& graph) {
  struct Sum {
    double ns = 0, count = 0;
  };
  std::array<Sum, UINT8_MAX + 1> kinds;
  for (uint32_t op = 0; op < graph.size(); ++op)
    if (Sum& kind = kinds[static_cast<uint8_t>(graph.kind[op])]; is_compute(graph.kind[op]))
      kind.ns += graph.dur_ns[op], ++kind.count;
  double least = 0;
  for (const Sum& kind : kinds)
    if (kind.count > 0 && (least == 0 || kind.ns / kind.count < least)) least = kind.ns / kind.count;
  return least;
}

// When it is: the shape of what a cause costs by step, where the cause has no shape of its own and this one is plain,
// next to nothing in the lower steps of an onset or of every n-th one.
Course when_lost(const Cause& cause, const std::vector<double>& by_step) {
  if (cause.course.varies()) return {};
  Course course = course_of(by_step);
  const auto [low, high] = std::minmax(course.low, course.high);
  const bool two_levels = course.kind == CourseKind::kOnset || course.kind == CourseKind::kEvery;
  const bool plain =
      two_levels ? low <= kNextToNothing * high : course.kind == CourseKind::kTrend && low <= 2 * kNextToNothing * high;
  return high > 0 && plain ? course : Course{};
}

// What becomes of a suspicion: one of the list, perhaps chance, or too little to say.
enum class Verdict : uint8_t { kTaken, kDoubtful, kLittle };

// `beside`: what it costs where all others of its kind are gone. Of two stages that are equally slow each alone brings
// nothing.
struct Gain {
  double ns = 0, error_ns = 0;
};
Verdict take(Cause& cause, CauseList& list, bool evened, const Gain& beside = {}) {
  const Gain alone{cause.lost_ns, cause.error_ns};
  if (beside.ns > alone.ns) cause.lost_ns = beside.ns, cause.error_ns = beside.error_ns;
  if (evened && is_unmovable(cause, list)) cause.unmovable = true, cause.saving_ns = 0;
  const bool little = costs_little(cause, list, evened), sure = !may_be_chance(cause, list);
  cause.lost_ns = alone.ns, cause.error_ns = alone.error_ns;
  if (little) return Verdict::kLittle;
  (sure ? list.causes : list.doubtful).push_back(std::move(cause));
  return sure ? Verdict::kTaken : Verdict::kDoubtful;
}

// Replays of the steps without this and that.
class Worlds {
 public:
  explicit Worlds(const CauseScene& scene) : scene_(scene), launch_ns_(launch_delays(scene.graph)) {}

  // As it was, without all of `changes`, in order.
  void operation(uint32_t op, std::span<const CauseWorld* const> changes, double& dur, double& delay) const {
    const StepGraph& g = scene_.graph;
    dur = g.dur_ns[op];
    delay = is_compute(g.kind[op]) ? g.delay_ns[op] : std::min(g.delay_ns[op], launch_ns_[g.type[op]]);
    for (const CauseWorld* change : changes) (*change)(op, dur, delay);
  }
  WorldTimes replay(const std::vector<std::vector<const CauseWorld*>>& worlds) const {
    return replay_worlds(scene_.graph, worlds.size(),
                         [&](uint32_t op, size_t first, std::span<double> dur, std::span<double> delay) {
                           for (size_t i = 0; i < dur.size(); ++i) operation(op, worlds[first + i], dur[i], delay[i]);
                         });
  }

 private:
  const CauseScene& scene_;
  std::vector<double> launch_ns_;
};

// By step that counts, what world `to` takes less than world `from`.
std::vector<double> gains_of(const WorldTimes& times, size_t from, size_t to, const std::vector<bool>& counts) {
  std::vector<double> gains;
  for (size_t s = 0; s < counts.size(); ++s)
    if (counts[s]) gains.push_back(times.ns(s, from) - times.ns(s, to));
  return gains;
}

double error_of(const std::vector<double>& values) {
  return sample_std(values) / std::sqrt(static_cast<double>(values.size()));
}

// What is left of the steps once all that is named is gone, told apart by replays with more and more of the real times,
// as the waterfall's: each kind of cell at its mean, each place at its own, each cell, messages, late starts.
void account_for_rest(const CauseScene& scene, const Worlds& worlds, const std::vector<const CauseWorld*>& all,
                      const std::vector<bool>& counts, std::vector<AccountLine>& left) {
  const StepGraph& g = scene.graph;
  const CellTimes& times = scene.times;
  const auto place_of = [&](uint32_t op) {
    return times.worker_of(op) == CellTimes::kNone ? UINT32_MAX : static_cast<uint32_t>(times.place_of(op));
  };
  const OpBlocks blocks(counted_ops(g, counts), times.place_count());
  std::vector<double> sum(blocks.size() * times.place_count()), count(sum.size());
  blocks.each([&](size_t b, uint32_t op) {
    const uint32_t place = place_of(op);
    if (place == UINT32_MAX) return;
    double dur = 0, delay = 0;
    worlds.operation(op, all, dur, delay);
    sum[b * times.place_count() + place] += dur;
    ++count[b * times.place_count() + place];
  });
  std::vector<double> place_ns(times.place_count()), cells(times.place_count());
  for (size_t i = 0; i < sum.size(); ++i) place_ns[i % place_ns.size()] += sum[i], cells[i % cells.size()] += count[i];
  std::array<double, CellTimes::kKinds> kind_ns{}, of_kind{};
  for (size_t p = 0; p < place_ns.size(); ++p) {
    kind_ns[p % CellTimes::kKinds] += place_ns[p], of_kind[p % CellTimes::kKinds] += cells[p];
    if (cells[p] > 0) place_ns[p] /= cells[p];
  }
  for (size_t k = 0; k < kind_ns.size(); ++k)
    if (of_kind[k] > 0) kind_ns[k] /= of_kind[k];
  const CauseWorld prompt = [&](uint32_t op, double&, double& delay) {
    if (is_compute(g.kind[op])) delay = std::min(delay, 0.0);
  };
  const CauseWorld at_once = [&](uint32_t op, double& dur, double&) {
    if (is_message(g.kind[op])) dur = std::min(dur, 0.0);
  };
  const CauseWorld by_place = [&](uint32_t op, double& dur, double&) {
    if (const uint32_t place = place_of(op); place != UINT32_MAX) dur = place_ns[place];
  };
  const CauseWorld by_kind = [&](uint32_t op, double& dur, double&) {
    if (const uint32_t place = place_of(op); place != UINT32_MAX) dur = kind_ns[place % CellTimes::kKinds];
  };
  std::vector<std::vector<const CauseWorld*>> levels(5, all);
  for (size_t l = 1; l < levels.size(); ++l) levels[l].push_back(&prompt);
  for (size_t l = 2; l < levels.size(); ++l) levels[l].push_back(&at_once);
  levels[3].push_back(&by_place), levels[4].push_back(&by_kind);
  const WorldTimes replayed = worlds.replay(levels);
  for (size_t l = 0; l + 1 < levels.size(); ++l) {
    constexpr std::array<std::string_view, 4> kIds = {"late", "message", "jitter", "imbalance"};
    left.push_back({kIds[l], "", CellKind::kOther, mean_of(gains_of(replayed, l, l + 1, counts))});
  }
}

CauseList search(const Run& run, const StepGraph& graph, bool links_alone) {
  const Trace& trace = run.trace();
  const TheoryRun& theory = theory_of(run);
  const RunCoverage& coverage = coverage_of(run);
  const PipelineSums& sums = sums_of(run);
  // Of a part of a run nobody knows what the other ranks, or the work that was not recorded, did between steps.
  const bool backwards =
      std::any_of(graph.kind.begin(), graph.kind.end(), [](CellKind kind) { return is_backward(kind); });
  const StepPeriods none;
  const StepPeriods& periods = coverage.whole() && !coverage.by_warm_up() && backwards ? periods_of(run) : none;
  std::vector<bool> counts;
  std::vector<double> recorded;
  double all_ns = 0;
  for (const GraphStep& step : graph.steps) {
    counts.push_back(!sums.is_outlier(step.step));
    if (counts.back()) recorded.push_back(static_cast<double>(step.span_ns));
    all_ns += static_cast<double>(step.span_ns);
  }
  CauseList list;
  list.steps = static_cast<int64_t>(recorded.size());
  list.all_steps = static_cast<int64_t>(graph.steps.size());
  if (!graph.steps.empty()) list.first_step = graph.steps.front().step;
  for (const GraphStep& step : graph.steps) list.step_numbers.push_back(step.step);
  list.gap_ns = periods.usual_ns;
  list.step_ns = mean_of(recorded) + list.gap_ns;
  list.wall_ns = all_ns / static_cast<double>(std::max<size_t>(graph.steps.size(), 1)) + periods.mean_ns;
  list.error_ns = error_of(recorded);
  list.untold = coverage.untold();
  if (list.untold) return list;
  // Without work that takes time every gap would look like a slow message.
  bool works = false;
  for (size_t i = 0; i < graph.size() && !works; ++i) works = is_compute(graph.kind[i]) && graph.dur_ns[i] > 0;
  if (!works) return list;
  CauseScene scene{trace, graph, counts, coverage, CellTimes(trace, graph, counts)};
  scene.two_ways = theory.recognition.recognised && theory.recognition.best().layout == ChunkLayout::kBidirectional;
  std::vector<CauseDraft> drafts = drafts_of(scene);
  if (links_alone) std::erase_if(drafts, [](const CauseDraft& d) { return d.cause.kind != CauseKind::kSlowLink; });
  if (links_alone && drafts.empty()) return list;
  // Worlds: as it was, then without each cause, then those evened out.
  std::vector<std::vector<const CauseWorld*>> worlds(1);
  for (const CauseDraft& draft : drafts) worlds.push_back({&draft.without});
  std::vector<size_t> evened(drafts.size(), 0);
  for (size_t d = 0; d < drafts.size(); ++d)
    if (drafts[d].evened) evened[d] = worlds.size(), worlds.push_back({&drafts[d].evened});
  std::vector<size_t> otherwise(drafts.size(), 0);
  for (size_t d = 0; d < drafts.size(); ++d)
    if (drafts[d].otherwise) otherwise[d] = worlds.size(), worlds.push_back({&drafts[d].otherwise});
  // Several slow stages, or links: without all of them, and without all but each.
  constexpr std::array kJoined = {CauseKind::kSlowStage, CauseKind::kSlowLink};
  std::vector<std::pair<size_t, size_t>> last_of_kind(drafts.size(),
                                                      {0, 0});  // worlds: without the others, without all
  for (const CauseKind kind : kJoined) {
    std::vector<size_t> alike;
    for (size_t d = 0; d < drafts.size(); ++d)
      if (drafts[d].cause.kind == kind) alike.push_back(d);
    if (alike.size() < 2) continue;
    const size_t joint = worlds.size() + alike.size();
    for (const size_t but : alike) {
      last_of_kind[but] = {worlds.size(), joint};
      worlds.emplace_back();
      for (const size_t d : alike)
        if (d != but) worlds.back().push_back(&drafts[d].without);
    }
    worlds.emplace_back();
    for (const size_t d : alike) worlds.back().push_back(&drafts[d].without);
  }
  // Uneven data beside a replica that has more of them all along: one hides a part of what the other costs.
  std::vector<size_t> of_data;  // drafts: replicas that are slow as a whole
  size_t data = drafts.size();
  for (size_t d = 0; d < drafts.size(); ++d) {
    const Cause& cause = drafts[d].cause;
    if (cause.kind == CauseKind::kRouting && !cause.guessed) data = d;
    if (cause.whole_replica && !cause.course.varies()) of_data.push_back(d);
  }
  if (data < drafts.size() && !of_data.empty()) {
    last_of_kind[data] = {worlds.size(), worlds.size() + 1};
    worlds.emplace_back();
    for (const size_t d : of_data) worlds.back().push_back(&drafts[d].without);
    worlds.push_back(worlds.back());
    worlds.back().push_back(&drafts[data].without);
  }
  const CauseWorld at_once = [&graph](uint32_t op, double& dur, double&) {
    if (is_message(graph.kind[op])) dur = std::min(dur, 0.0);
  };
  const size_t without_messages = worlds.size();
  worlds.push_back({&at_once});
  const Worlds model(scene);
  const WorldTimes each = model.replay(worlds);
  const double shortest_ns = shortest_kind_ns(graph) * scene.times.chunks();  // of a micro-batch on its rank
  const auto gain = [&](const WorldTimes& times, size_t from, size_t world) {
    const std::vector<double> gains = gains_of(times, from, world, counts);
    return std::pair(mean_of(gains), error_of(gains));
  };
  // Of all steps: in one that something else makes long a cause costs what the replay of that step says, often nothing.
  const std::vector<bool> every(counts.size(), true);
  const auto gain_of_all = [&](const WorldTimes& times, size_t from, size_t world) {
    return mean_of(gains_of(times, from, world, every));
  };
  // No draft of this kind brings half of what all of them do: where one does, it comes first and hides the others.
  const auto none_alone = [&](size_t of, size_t all_of_kind) {
    constexpr double kHalf = 0.5;
    const double together_ns = gain(each, 0, all_of_kind).first;
    for (size_t d = 0; d < drafts.size(); ++d)
      if (drafts[d].cause.kind == drafts[of].cause.kind && gain(each, 0, d + 1).first >= kHalf * together_ns)
        return false;
    return true;
  };
  const auto explains_long_step = [&](size_t d) {
    if (links_alone || recorded.size() == graph.steps.size()) return false;
    const double usual_ns = median_of(recorded);
    for (size_t s = 0; s < counts.size(); ++s) {
      const double span_ns = static_cast<double>(graph.steps[s].span_ns);
      if (!counts[s] && span_ns - each.ns(s, 0) + each.ns(s, d + 1) < kOutlierStep * usual_ns) return true;
    }
    return false;
  };
  list.messages_ns = gain(each, 0, without_messages).first;
  std::vector<const CauseWorld*> all;
  std::vector<std::pair<Cause, const CauseWorld*>> little;
  std::vector<size_t> taken;  // drafts, by list.causes
  std::vector<AccountLine> left;
  for (size_t d = 0; d < drafts.size(); ++d) {
    Cause cause = drafts[d].cause;
    std::tie(cause.lost_ns, cause.error_ns) = gain(each, 0, d + 1);
    if (evened[d] > 0) cause.saving_ns = gain(each, 0, evened[d]).first;
    // Twice the error reaches the other reading.
    if (otherwise[d] > 0) {
      cause.otherwise_ns = gain(each, 0, otherwise[d]).first;
      cause.error_ns = std::hypot(cause.error_ns, (cause.lost_ns - cause.otherwise_ns) / 2);
    }
    if (cause.kind == CauseKind::kTail) {
      // One that is shorter than a cell is a loop's own, as time between steps is, and so may as much of a longer one
      // be. What one stage takes beyond the others needs no such allowance; of what is far longer than its twin as
      // much as that takes may be the usual.
      const bool beside = cause.stage != kUnknown || !cause.twin.empty();
      const double least = beside ? kLeastLost * list.step_ns : std::max(kLeastTail * list.step_ns, shortest_ns);
      if (cause.lost_ns < least) {
        // Where they start at once there is no time before them.
        if (cause.cell_kind != CellKind::kOther || cause.lost_ns >= 1)
          left.push_back({"tail", cause.name, cause.cell_kind, cause.lost_ns});
        continue;
      }
      const double usual_ns = cause.twin.empty() ? shortest_ns : cause.times.front().others_ns;
      if (cause.stage == kUnknown)
        cause.error_ns = std::hypot(std::isnan(cause.error_ns) ? 0 : cause.error_ns, usual_ns / 2);
    }
    const bool hidden = cause.lost_ns < kLeastLost * list.step_ns;
    Gain last;
    if (const auto [others, all_of_kind] = last_of_kind[d];
        all_of_kind > 0 && (d == data || none_alone(d, all_of_kind)))
      std::tie(last.ns, last.error_ns) = gain(each, others, all_of_kind);
    switch (take(cause, list, evened[d] > 0, last)) {
      case Verdict::kTaken: {
        std::vector<double> by_step(counts.size(), kNaN);
        for (size_t s = 0; s < counts.size(); ++s)
          if (counts[s]) by_step[s] = each.ns(s, 0) - each.ns(s, d + 1);
        list.causes.back().lost_course = when_lost(list.causes.back(), by_step);
        all.push_back(&drafts[d].without);
        taken.push_back(d);
        break;
      }
      case Verdict::kDoubtful:
        // A step that is long for this and for nothing else shows that it is there, whatever its mean scatters by.
        if (!explains_long_step(d)) break;
        list.causes.push_back(std::move(list.doubtful.back()));
        list.doubtful.pop_back();
        all.push_back(&drafts[d].without);
        taken.push_back(d);
        break;
      case Verdict::kLittle:
        if (hidden && little.size() < kMostHidden) little.emplace_back(std::move(cause), &drafts[d].without);
    }
  }
  worlds = {{}, all};
  for (const auto& [cause, without] : little) {
    worlds.push_back(all);
    worlds.back().push_back(without);
  }
  // Those that are told together are also replayed together.
  struct Joint {
    std::vector<size_t> causes;  // into list.causes
    size_t world;                // of `together`
  };
  std::vector<Joint> joints;
  for (const CauseKind kind : kJoined) {
    Joint joint{{}, worlds.size()};
    std::vector<const CauseWorld*> without;
    for (size_t i = 0; i < taken.size(); ++i)
      if (list.causes[i].kind == kind) joint.causes.push_back(i), without.push_back(&drafts[taken[i]].without);
    if (joint.causes.size() < 2) continue;
    joints.push_back(std::move(joint));
    worlds.push_back(std::move(without));
  }
  if (const auto at = std::find(taken.begin(), taken.end(), data); at != taken.end()) {
    Joint joint{{static_cast<size_t>(at - taken.begin())}, worlds.size()};
    std::vector<const CauseWorld*> without = {&drafts[data].without};
    for (size_t i = 0; i < taken.size(); ++i) {
      if (std::find(of_data.begin(), of_data.end(), taken[i]) == of_data.end()) continue;
      list.causes[i].told_with_data = true;
      std::set<int32_t> replicas = {list.causes[i].dp};
      for (const int32_t part : list.causes[i].parts) replicas.insert(trace.parts[static_cast<size_t>(part)].dp);
      auto& with_more = list.causes[joint.causes.front()].replicas;
      with_more.insert(with_more.end(), replicas.begin(), replicas.end());
      without.push_back(&drafts[taken[i]].without);
    }
    if (without.size() > 1) {
      joints.push_back(std::move(joint));
      worlds.push_back(std::move(without));
    }
  }
  const WorldTimes together = links_alone && all.empty() ? each : model.replay(worlds);
  if (!all.empty())
    for (size_t i = 0; i < little.size(); ++i) {
      Cause& cause = little[i].first;
      std::tie(cause.lost_ns, cause.error_ns) = gain(together, 1, i + 2);
      if (cause.lost_ns >= kLeastLost * list.step_ns && !may_be_chance(cause, list))
        list.hidden.push_back(std::move(cause));
    }
  if (!links_alone && recorded.size() < graph.steps.size()) {
    // A long step that the causes explain counts for their prices; what they leave of another one has its own reason.
    const auto rest_of = [&](size_t s) {
      return static_cast<double>(graph.steps[s].span_ns) - together.ns(s, 0) + together.ns(s, 1);
    };
    std::vector<double> usual, explained = recorded;
    for (size_t s = 0; s < graph.steps.size(); ++s)
      if (counts[s]) usual.push_back(rest_of(s));
    const double scatter_ns = sample_std(usual), usual_ns = median_of(std::move(usual));
    std::vector<size_t> unexplained;
    for (size_t s = 0; s < graph.steps.size(); ++s) {
      if (counts[s]) continue;
      const auto span_ns = static_cast<double>(graph.steps[s].span_ns);
      if (rest_of(s) < kOutlierStep * usual_ns) {
        counts[s] = true;
        explained.push_back(span_ns);
        continue;
      }
      LongStep step;
      step.step = graph.steps[s].step;
      step.span_ns = span_ns, step.usual_ns = mean_of(recorded), step.excess_ns = rest_of(s) - usual_ns;
      step.scatter_ns = std::isnan(scatter_ns) ? 0 : scatter_ns;
      list.long_steps.push_back(step);
      unexplained.push_back(s);
    }
    const OpWorld world = [&](uint32_t op, double& dur, double& delay) { model.operation(op, all, dur, delay); };
    explain_long_steps(scene, world, unexplained, list.long_steps);
    for (LongStep& step : list.long_steps) {
      const bool of_all = step.by == LongBy::kAll;
      step.lost_ns = of_all ? step.span_ns - step.usual_ns : step.excess_ns;
      step.lost_scatter_ns = of_all && recorded.size() > 1 ? sample_std(recorded) : step.scatter_ns;
    }
    list.step_ns = mean_of(explained) + list.gap_ns;
    for (size_t i = 0; i < taken.size(); ++i) {
      Cause& cause = list.causes[i];
      cause.lost_ns = gain_of_all(each, 0, taken[i] + 1);
      if (evened[taken[i]] > 0 && !cause.unmovable) cause.saving_ns = gain_of_all(each, 0, evened[taken[i]]);
    }
  }
  for (const Joint& joint : joints)
    for (const size_t i : joint.causes) {
      Cause& cause = list.causes[i];
      cause.joint_ns = gain_of_all(together, 0, joint.world);
      cause.joint_error_ns = gain(together, 0, joint.world).second;
    }
  if (!all.empty()) std::tie(list.together_ns, list.together_error_ns) = gain(together, 0, 1);
  double rest_ns = 0, counted = 0;
  for (size_t s = 0; s < counts.size(); ++s)
    if (counts[s]) rest_ns += static_cast<double>(graph.steps[s].span_ns) - together.ns(s, 0), ++counted;
  rest_ns /= std::max(counted, 1.0);
  left.push_back({"rest", "", CellKind::kOther, rest_ns});
  // No price is known better than the replays return the step: twice the error reaches what they leave open.
  for (size_t i = 0; i < taken.size(); ++i)
    for (double* error_ns : {&list.causes[i].error_ns, &list.causes[i].joint_error_ns})
      *error_ns = std::hypot(*error_ns, rest_ns / 2);
  if (!links_alone) {
    account_for_rest(scene, model, all, counts, left);
    std::vector<Cause> beside;
    add_order_causes(trace, graph, theory, counts, beside);
    const bool optimizers =
        std::any_of(graph.kind.begin(), graph.kind.end(), [](CellKind kind) { return kind == CellKind::kOptimizer; });
    for (Cause& cause : between_causes(periods)) {
      const bool usual = !cause.sometimes;
      std::vector<double> by_step(list.step_numbers.size(), kNaN);
      for (size_t i = 0; i < by_step.size(); ++i)
        if (const auto at = cause.held_ns.find(list.step_numbers[i]); at != cause.held_ns.end())
          by_step[i] = at->second;
      cause.lost_course = when_lost(cause, by_step);
      cause.guessed = usual && !optimizers && cause.name.empty();  // the optimizer may be what fills the gap
      // What nobody named and what is shorter than a cell is a loop's own: no step goes without some of it. So may as
      // much of a longer gap be.
      if (usual && cause.name.empty()) cause.error_ns = shortest_ns / 2;
      const bool short_one = cause.name.empty() && periods.usual_ns < shortest_ns;
      if (usual && (short_one || periods.usual_ns < (cause.guessed ? kLeastTail : kLeastGap) * list.step_ns))
        left.push_back({"between", cause.name, CellKind::kOther, cause.lost_ns});
      else
        beside.push_back(std::move(cause));
    }
    for (Cause& cause : beside) {
      const double lost_ns = cause.lost_ns, error_ns = cause.error_ns;
      const CauseKind kind = cause.kind;
      const std::string name = cause.name;
      if (take(cause, list, false) != Verdict::kTaken) {
        if (kind == CauseKind::kBetweenSteps) left.push_back({"between", name, CellKind::kOther, lost_ns});
        continue;
      }
      list.together_ns += lost_ns;
      list.together_error_ns = std::hypot(list.together_error_ns, error_ns);
    }
    list.schedule_ns = list.step_ns - list.together_ns;
    for (const AccountLine& line : left) list.schedule_ns -= line.ns;
    for (const Cause& cause : list.causes)  // what a few gaps alone lost is no part of the usual step
      if (cause.kind == CauseKind::kBetweenSteps && cause.outside) list.schedule_ns += cause.lost_ns;
    if (!all.empty()) list.together_ns += gain_of_all(together, 0, 1) - gain(together, 0, 1).first;
    for (const LongStep& step : list.long_steps)
      list.together_ns += step.excess_ns / static_cast<double>(std::max<int64_t>(list.all_steps, 1));
    list.left = std::move(left);
  }
  sort_causes(list.causes);
  for (std::vector<Cause>* others : {&list.doubtful, &list.hidden})
    std::stable_sort(others->begin(), others->end(),
                     [](const Cause& a, const Cause& b) { return a.lost_ns > b.lost_ns; });
  return list;
}

struct CausesFact {
  using Value = CauseList;
  static Value make(const Run& run) {
    const RunGraph& made = graph_of(run, LaunchRule::kInOrder);
    return made.graph ? search(run, *made.graph, false) : CauseList{};
  }
};

}  // namespace

const CauseList& causes_of(const Run& run) { return run.fact<CausesFact>(); }

CauseList find_slow_links(const Run& run, const StepGraph& graph) { return search(run, graph, true); }

}  // namespace stageline
