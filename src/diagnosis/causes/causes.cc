#include "diagnosis/causes/causes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "diagnosis/causes/account_rest.h"
#include "diagnosis/causes/beyond_noise.h"
#include "diagnosis/causes/cause_drafts.h"
#include "diagnosis/causes/cause_worlds.h"
#include "diagnosis/causes/order_cause.h"
#include "diagnosis/causes/period_causes.h"
#include "facts/period_facts.h"
#include "facts/step_means.h"
#include "model/statistics.h"
#include "pipeline/sums/pipeline_sums.h"

namespace stageline {
namespace {

constexpr int64_t kMinPauses = 3;  // with this many, it is no chance how they fall on steps
// Share of a step; a stage that costs this much is told even though nothing can be moved.
constexpr double kMuchOfStep = 0.05;
constexpr size_t kMaxHidden = 16;  // suspicions that are replayed again without the causes that were found

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

// Whether a cause is not worth saying: it loses too little or, where work can only be evened out, evening out saves too
// little. A stage that costs a twentieth of a step (is_unmovable) is told all the same: it is slow, whatever can be
// done about it.
bool costs_little(const Cause& c, const CauseList& list, bool evened) {
  const double least = kMinLost * list.step_ns;
  return !(c.lost_ns >= least) || (evened && c.saving_ns < least && !c.unmovable);
}
bool is_unmovable(const Cause& c, const CauseList& list) {
  return c.kind == CauseKind::kSlowStage && c.saving_ns < kMinLost * list.step_ns &&
         c.lost_ns >= kMuchOfStep * list.step_ns;
}

// Pauses are not chance by themselves: their length is far beyond how much cells differ, and only their number per step
// varies. Nor are long sequences, on which forwards and backwards agree on every stage, nor what its own search found
// certain.
bool may_be_chance(const Cause& c, const CauseList& list) {
  // This time was recorded; nothing was inferred.
  if (c.kind == CauseKind::kBetweenSteps || c.kind == CauseKind::kTail) return false;
  const bool counted = c.kind == CauseKind::kPauses || c.kind == CauseKind::kMessageTail ||
                       c.kind == CauseKind::kLateStarts || c.kind == CauseKind::kLongSequences;
  // Where only one step lost something, the error is as large as the mean.
  constexpr double kOneStep = 0.999;
  if (c.certain && c.lost_ns > 0 && c.lost_ns >= kOneStep * c.error_ns) return false;
  if (counted && c.count >= kMinPauses && c.lost_ns > c.error_ns) return false;
  return !beyond_noise(c.lost_ns, c.error_ns, list.steps);
}

// Mean time of the shortest kind of compute cell.
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

// The shape in time of what a cause costs. It is told only where the cause has no course of its own and this shape is
// plain: next to nothing in the low steps of an onset or of every n-th step, or a trend that at least doubles.
Course when_lost(const Cause& cause, const std::vector<double>& by_step) {
  if (cause.course.varies()) return {};
  Course course = course_of(by_step);
  const auto [low, high] = std::minmax(course.low, course.high);
  const bool two_levels = course.kind == CourseKind::kOnset || course.kind == CourseKind::kEvery;
  const bool plain =
      two_levels ? low <= kNextToNothing * high : course.kind == CourseKind::kTrend && low <= 2 * kNextToNothing * high;
  return high > 0 && plain ? course : Course{};
}

// What becomes of a suspicion: a cause of the list, one that may be chance, or too little to mention.
enum class Verdict : uint8_t { kTaken, kDoubtful, kLittle };

// `beside` is what the cause costs once all others of its kind are gone: of two equally slow stages, each alone saves
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

// The search for causes, in the order of the calls of list(). Worlds and drafts point to each other: it stays where it
// is.
class Search {
 public:
  Search(const Run& run, const StepGraph& graph)
      : trace_(run.trace()),
        graph_(graph),
        theory_(theory_of(run)),
        coverage_(coverage_of(run)),
        sums_(sums_of(run)),
        times_(step_means_of(run)),
        periods_(tells_periods() ? periods_of(run) : no_periods_) {}
  Search(const Search&) = delete;

  CauseList list() {
    if (!begin()) return std::move(list_);
    scene_.emplace(CauseScene{trace_, graph_, counts_, coverage_, CellTimes(trace_, graph_, counts_)});
    scene_->two_ways =
        theory_.recognition.recognised && theory_.recognition.best().layout == ChunkLayout::kBidirectional;
    drafts_ = drafts_of(*scene_);
    model_.emplace(*scene_);
    replay_each();
    judge_each();
    judge_behind_others();
    replay_together();
    if (recorded_.size() < graph_.steps.size()) explain_rest_of_long_steps();
    price_together();
    close_account();
    sort_causes(list_.causes);
    for (std::vector<Cause>* others : {&list_.doubtful, &list_.hidden})
      std::stable_sort(others->begin(), others->end(),
                       [](const Cause& a, const Cause& b) { return a.lost_ns > b.lost_ns; });
    return std::move(list_);
  }

 private:
  using World = CauseWorlds::World;
  // Several slow stages, or several slow links, are also told together.
  static constexpr std::array kJoined = {CauseKind::kSlowStage, CauseKind::kSlowLink};
  // Indexes of a draft's worlds in each_; 0: it has no such world.
  struct DraftWorlds {
    size_t without = 0, evened = 0, otherwise = 0;
    // The world without all others of its kind, and the one without it as well.
    size_t others_gone = 0, all_gone = 0;
  };
  struct Joint {
    std::vector<size_t> causes;  // indices of list_.causes
    size_t world;                // the world of together_ without all of them
  };

  // Where only a part of the run was read, nobody knows what the rest did between steps.
  bool tells_periods() const {
    const bool backwards =
        std::any_of(graph_.kind.begin(), graph_.kind.end(), [](CellKind kind) { return is_backward(kind); });
    return coverage_.whole() && !coverage_.by_warm_up() && backwards;
  }

  // Whether causes are looked for.
  bool begin() {
    count_steps();
    list_.not_analysable = coverage_.not_analysable();
    list_.replicas_unread = coverage_.replicas_unread() > 0;
    return !list_.not_analysable && works();
  }

  // Finds the steps that count, and fills what the list says of all steps.
  void count_steps() {
    for (const GraphStep& step : graph_.steps) {
      counts_.push_back(!sums_.is_outlier(step.step));
      if (counts_.back()) recorded_.push_back(static_cast<double>(step.span_ns));
      list_.step_numbers.push_back(step.step);
    }
    list_.steps = static_cast<int64_t>(recorded_.size());
    list_.all_steps = static_cast<int64_t>(graph_.steps.size());
    if (!graph_.steps.empty()) list_.first_step = graph_.steps.front().step;
    list_.mean_of_steps = list_.steps;
    list_.gap_ns = times_.usual.gap_ns;
    list_.step_ns = times_.usual.period_ns();
    list_.wall_ns = times_.all.period_ns();
    list_.error_ns = standard_error(recorded_);
  }

  // Without work that takes time, every gap would look like a slow message.
  bool works() const {
    for (size_t i = 0; i < graph_.size(); ++i)
      if (is_compute(graph_.kind[i]) && graph_.dur_ns[i] > 0) return true;
    return false;
  }

  // How much shorter a step is in world `to` than in world `from`: mean and standard error over the steps that count.
  Gain gain(const WorldTimes& times, size_t from, size_t to) const {
    const std::vector<double> gains = gains_of(times, from, to, counts_);
    return {mean_of(gains), standard_error(gains)};
  }
  // Mean over all steps: in a step that something else makes long, a cause costs what the replay of that step says,
  // often nothing.
  double gain_of_all(const WorldTimes& times, size_t from, size_t to) const {
    return mean_of(gains_of(times, from, to, std::vector<bool>(counts_.size(), true)));
  }

  // Worlds: as recorded; without the cause of each draft; with work evened out, and by another reading, for drafts that
  // have such worlds; without several causes at once; without messages.
  void replay_each() {
    std::vector<World> worlds(1);
    const auto add = [&](const CauseWorld& change) {
      if (!change) return size_t{0};
      worlds.push_back({change});
      return worlds.size() - 1;
    };
    worlds_of_.resize(drafts_.size());
    for (size_t d = 0; d < drafts_.size(); ++d) worlds_of_[d].without = add(drafts_[d].without);
    for (size_t d = 0; d < drafts_.size(); ++d) worlds_of_[d].evened = add(drafts_[d].evened);
    for (size_t d = 0; d < drafts_.size(); ++d) worlds_of_[d].otherwise = add(drafts_[d].otherwise);
    for (const CauseKind kind : kJoined) add_worlds_of_kind(kind, worlds);
    add_worlds_of_data(worlds);
    const CauseWorld at_once = [this](uint32_t op, double& dur, double&) {
      if (is_message(graph_.kind[op])) dur = std::min(dur, 0.0);
    };
    worlds.push_back({at_once});
    each_ = model_->replay(worlds);
    const Gain of_messages = gain(each_, 0, worlds.size() - 1);
    list_.messages_ns = of_messages.ns, list_.messages_error_ns = of_messages.error_ns;
  }

  void add_worlds_of_kind(CauseKind kind, std::vector<World>& worlds) {
    std::vector<size_t> alike;
    for (size_t d = 0; d < drafts_.size(); ++d)
      if (drafts_[d].cause.kind == kind) alike.push_back(d);
    if (alike.size() < 2) return;
    const size_t joint = worlds.size() + alike.size();
    for (const size_t but : alike) {
      worlds_of_[but].others_gone = worlds.size(), worlds_of_[but].all_gone = joint;
      worlds.emplace_back();
      for (const size_t d : alike)
        if (d != but) worlds.back().push_back(drafts_[d].without);
    }
    worlds.emplace_back();
    for (const size_t d : alike) worlds.back().push_back(drafts_[d].without);
  }

  // Uneven data and a replica that has more data all along each hide a part of what the other costs.
  void add_worlds_of_data(std::vector<World>& worlds) {
    data_ = drafts_.size();
    for (size_t d = 0; d < drafts_.size(); ++d) {
      const Cause& cause = drafts_[d].cause;
      if (cause.kind == CauseKind::kRouting && !cause.guessed) data_ = d;
      if (cause.whole_replica && !cause.course.varies()) with_more_data_.push_back(d);
    }
    if (data_ == drafts_.size() || with_more_data_.empty()) return;
    worlds_of_[data_].others_gone = worlds.size(), worlds_of_[data_].all_gone = worlds.size() + 1;
    worlds.emplace_back();
    for (const size_t d : with_more_data_) worlds.back().push_back(drafts_[d].without);
    worlds.push_back(worlds.back());
    worlds.back().push_back(drafts_[data_].without);
  }

  // Prices each draft as if it were the only cause, and keeps those that cost enough beyond chance.
  void judge_each() {
    shortest_ns_ = shortest_kind_ns(graph_) * scene_->times.chunks();  // of one micro-batch on its rank
    for (size_t d = 0; d < drafts_.size(); ++d) {
      const DraftWorlds& of = worlds_of_[d];
      Cause cause = drafts_[d].cause;
      price(cause, of);
      if (cause.kind == CauseKind::kTail && (is_usual_tail(cause) || may_wait_for_unread(cause))) continue;
      const bool hidden = cause.lost_ns < kMinLost * list_.step_ns;
      Gain last;
      if (of.all_gone > 0 && (d == data_ || none_alone(d))) last = gain(each_, of.others_gone, of.all_gone);
      switch (take(cause, list_, of.evened > 0, last)) {
        case Verdict::kTaken:
          list_.causes.back().lost_course = when_lost(list_.causes.back(), lost_by_step(d));
          keep(d);
          break;
        case Verdict::kDoubtful:
          // A step that is long only for this cause proves that it is there, however much its mean scatters.
          if (!explains_long_step(d)) break;
          list_.causes.push_back(std::move(list_.doubtful.back()));
          list_.doubtful.pop_back();
          keep(d);
          break;
        case Verdict::kLittle:
          if ((hidden || of.evened > 0) && little_.size() < kMaxHidden) little_.emplace_back(std::move(cause), d);
      }
    }
  }

  void price(Cause& cause, const DraftWorlds& of) const {
    const Gain alone = gain(each_, 0, of.without);
    cause.lost_ns = alone.ns, cause.error_ns = alone.error_ns;
    if (of.evened > 0) cause.saving_ns = gain(each_, 0, of.evened).ns;
    if (of.otherwise == 0) return;
    // The error is widened so that twice the error reaches the other reading.
    cause.otherwise_ns = gain(each_, 0, of.otherwise).ns;
    cause.error_ns = std::hypot(cause.error_ns, (cause.lost_ns - cause.otherwise_ns) / 2);
  }

  // Whether a tail is only a line of the account. One that is shorter than a cell belongs to every training loop, as
  // time between steps does, and so may as much of a longer one, by which its error is widened. What one stage takes
  // beyond the others needs no such allowance. A tail that takes far longer than its twin may need as much as the twin.
  bool is_usual_tail(Cause& cause) {
    const bool beside = cause.stage != kUnknown || !cause.twin.empty();
    const double least = beside ? kMinLost * list_.step_ns : std::max(kMinTail * list_.step_ns, shortest_ns_);
    if (cause.lost_ns < least) {
      // Where these operations start at once there is no time before them to tell of.
      if (cause.cell_kind != CellKind::kOther || cause.lost_ns >= 1)
        left_.push_back({"tail", cause.name, cause.cell_kind, cause.lost_ns});
      return true;
    }
    const double usual_ns = cause.twin.empty() ? shortest_ns_ : cause.times.front().others_ns;
    if (cause.stage == kUnknown)
      cause.error_ns = std::hypot(std::isnan(cause.error_ns) ? 0 : cause.error_ns, usual_ns / 2);
    return false;
  }

  // Whether a tail may be waiting for stages or replicas that were not read: then it is only a line of the account.
  bool may_wait_for_unread(const Cause& cause) {
    const bool all_read = coverage_.whole() && coverage_.replicas_unread() == 0;
    if (all_read || cause.cell_kind == CellKind::kOptimizer) return false;
    left_.push_back({"tail", cause.name, cause.cell_kind, cause.lost_ns});
    return true;
  }

  // Whether no draft of this kind alone saves half of what all of them save. One that does comes first and hides the
  // others.
  bool none_alone(size_t draft) const {
    constexpr double kHalf = 0.5;
    const double together_ns = gain(each_, 0, worlds_of_[draft].all_gone).ns;
    for (size_t d = 0; d < drafts_.size(); ++d)
      if (drafts_[d].cause.kind == drafts_[draft].cause.kind &&
          gain(each_, 0, worlds_of_[d].without).ns >= kHalf * together_ns)
        return false;
    return true;
  }

  bool explains_long_step(size_t draft) const {
    if (recorded_.size() == graph_.steps.size()) return false;
    const double usual_ns = median_of(recorded_);
    for (size_t s = 0; s < counts_.size(); ++s) {
      const double span_ns = static_cast<double>(graph_.steps[s].span_ns);
      const double without_ns = span_ns - each_.ns(s, 0) + each_.ns(s, worlds_of_[draft].without);
      if (!counts_[s] && without_ns < kOutlierStep * usual_ns) return true;
    }
    return false;
  }

  std::vector<double> lost_by_step(size_t draft) const {
    std::vector<double> by_step(counts_.size(), kNaN);
    for (size_t s = 0; s < counts_.size(); ++s)
      if (counts_[s]) by_step[s] = each_.ns(s, 0) - each_.ns(s, worlds_of_[draft].without);
    return by_step;
  }

  void keep(size_t draft) {
    all_.push_back(drafts_[draft].without);
    taken_.push_back(draft);
  }

  // What costs little as the step is may be next to hold it up once the causes that were kept are gone. A stage that
  // alone costs enough, and whose layers bring nothing elsewhere only because another cause holds the step up there, is
  // a cause too. With it gone others may come up, so all are judged again as long as a cause was added.
  void judge_behind_others() {
    while (!all_.empty() && judge_behind_once()) {
    }
  }

  // Returns whether a cause was added.
  bool judge_behind_once() {
    struct Behind {
      size_t index;                    // of little_ or, behind these, of taken_
      size_t others, without, evened;  // worlds; evened 0: there is none
    };
    std::vector<Behind> behind;
    std::vector<World> worlds = {{}, all_};
    const auto add = [&](World world, const CauseWorld& change) {
      if (!change) return size_t{0};
      world.push_back(change);
      worlds.push_back(std::move(world));
      return worlds.size() - 1;
    };
    const auto look_behind = [&](size_t index, const CauseDraft& draft, const World& others, size_t at) {
      const size_t without = add(others, draft.without);
      behind.push_back({index, at, without, add(others, draft.evened)});
    };
    for (size_t i = 0; i < little_.size(); ++i) look_behind(i, drafts_[little_[i].second], all_, 1);
    for (size_t i = 0; i < taken_.size(); ++i) {
      if (!list_.causes[i].unmovable || taken_.size() == 1) continue;
      World others;
      std::copy_if(all_.begin(), all_.end(), std::back_inserter(others),
                   [&](const CauseWorld& world) { return world != drafts_[taken_[i]].without; });
      worlds.push_back(others);
      look_behind(i, drafts_[taken_[i]], others, worlds.size() - 1);
    }
    if (behind.empty()) return false;
    list_.hidden.clear();
    std::vector<std::pair<Cause, size_t>> left;
    const WorldTimes times = model_->replay(worlds);
    const double least = kMinLost * list_.step_ns;
    for (size_t i = 0; i < behind.size(); ++i) {
      const Behind& b = behind[i];
      const Gain then = gain(times, b.others, b.without);
      const double evened_ns = b.evened > 0 ? gain(times, b.others, b.evened).ns : 0;
      if (i >= little_.size()) {
        if (then.ns >= least && evened_ns >= least) list_.causes[b.index].movable_ns = evened_ns;
        continue;
      }
      Cause cause = little_[i].first;
      const bool enough_alone = cause.lost_ns >= least, movable = evened_ns >= least;
      if (then.ns >= least && enough_alone && movable && cause.kind == CauseKind::kSlowStage &&
          !may_be_chance(cause, list_)) {
        cause.unmovable = true, cause.saving_ns = 0, cause.movable_ns = evened_ns;
        list_.causes.push_back(std::move(cause));
        keep(little_[i].second);
        continue;
      }
      left.push_back(little_[i]);
      cause.lost_ns = then.ns, cause.error_ns = then.error_ns;
      if (then.ns >= least && (!enough_alone || movable) && !may_be_chance(cause, list_))
        list_.hidden.push_back(std::move(cause));
    }
    const bool added = left.size() < little_.size();
    little_ = std::move(left);
    return added;
  }

  // Worlds: as recorded; without all causes that were kept; and, for causes that are told together, without these
  // alone.
  void replay_together() {
    std::vector<World> worlds = {{}, all_};
    for (const CauseKind kind : kJoined) {
      Joint joint{{}, worlds.size()};
      World without;
      for (size_t i = 0; i < taken_.size(); ++i)
        if (list_.causes[i].kind == kind) joint.causes.push_back(i), without.push_back(drafts_[taken_[i]].without);
      if (joint.causes.size() < 2) continue;
      joints_.push_back(std::move(joint));
      worlds.push_back(std::move(without));
    }
    join_data(worlds);
    together_ = model_->replay(worlds);
  }

  // Uneven data and the replicas that have more of them all along are told as one.
  void join_data(std::vector<World>& worlds) {
    const auto at = std::find(taken_.begin(), taken_.end(), data_);
    if (at == taken_.end()) return;
    Joint joint{{static_cast<size_t>(at - taken_.begin())}, worlds.size()};
    World without = {drafts_[data_].without};
    for (size_t i = 0; i < taken_.size(); ++i) {
      if (std::find(with_more_data_.begin(), with_more_data_.end(), taken_[i]) == with_more_data_.end()) continue;
      list_.causes[i].merged_into_data_cause = true;
      std::set<int32_t> replicas = {list_.causes[i].dp};
      for (const int32_t part : list_.causes[i].parts) replicas.insert(trace_.parts[part].dp);
      auto& with_more = list_.causes[joint.causes.front()].replicas;
      with_more.insert(with_more.end(), replicas.begin(), replicas.end());
      without.push_back(drafts_[taken_[i]].without);
    }
    if (without.size() == 1) return;
    joints_.push_back(std::move(joint));
    worlds.push_back(std::move(without));
  }

  // A long step that the causes explain counts for their prices; where they do not explain it all, the rest has its
  // own reason.
  void explain_rest_of_long_steps() {
    const auto rest_of = [&](size_t s) {
      return static_cast<double>(graph_.steps[s].span_ns) - together_.ns(s, 0) + together_.ns(s, 1);
    };
    std::vector<double> usual, explained = recorded_;
    for (size_t s = 0; s < graph_.steps.size(); ++s)
      if (counts_[s]) usual.push_back(rest_of(s));
    const double scatter_ns = sample_std(usual), usual_ns = median_of(std::move(usual));
    std::vector<size_t> unexplained;
    for (size_t s = 0; s < graph_.steps.size(); ++s) {
      if (counts_[s]) continue;
      const auto span_ns = static_cast<double>(graph_.steps[s].span_ns);
      if (rest_of(s) < kOutlierStep * usual_ns) {
        counts_[s] = true;
        explained.push_back(span_ns);
        continue;
      }
      LongStep step;
      step.step = graph_.steps[s].step;
      step.span_ns = span_ns, step.usual_ns = mean_of(recorded_), step.excess_ns = rest_of(s) - usual_ns;
      step.scatter_ns = std::isnan(scatter_ns) ? 0 : scatter_ns;
      list_.long_steps.push_back(step);
      unexplained.push_back(s);
    }
    const OpWorld world = [&](uint32_t op, double& dur, double& delay) { model_->operation(op, all_, dur, delay); };
    explain_long_steps(*scene_, world, unexplained, list_.long_steps);
    for (LongStep& step : list_.long_steps) {
      const bool of_all = step.by == LongBy::kAll;
      step.lost_ns = of_all ? step.span_ns - step.usual_ns : step.excess_ns;
      step.lost_scatter_ns = of_all && recorded_.size() > 1 ? sample_std(recorded_) : step.scatter_ns;
    }
    list_.step_ns = mean_of(explained) + list_.gap_ns;
    list_.mean_of_steps = static_cast<int64_t>(explained.size());
    for (size_t i = 0; i < taken_.size(); ++i) {
      Cause& cause = list_.causes[i];
      const DraftWorlds& of = worlds_of_[taken_[i]];
      cause.lost_ns = gain_of_all(each_, 0, of.without);
      if (of.evened > 0 && !cause.unmovable) cause.saving_ns = gain_of_all(each_, 0, of.evened);
    }
  }

  void price_together() {
    for (const Joint& joint : joints_)
      for (const size_t i : joint.causes) {
        list_.causes[i].joint_ns = gain_of_all(together_, 0, joint.world);
        list_.causes[i].joint_error_ns = gain(together_, 0, joint.world).error_ns;
      }
    if (!all_.empty()) {
      const Gain of_all = gain(together_, 0, 1);
      list_.together_ns = of_all.ns, list_.together_error_ns = of_all.error_ns;
    }
    double rest_ns = 0, counted = 0;
    for (size_t s = 0; s < counts_.size(); ++s)
      if (counts_[s]) rest_ns += static_cast<double>(graph_.steps[s].span_ns) - together_.ns(s, 0), ++counted;
    rest_ns /= std::max(counted, 1.0);
    left_.push_back({"rest", "", CellKind::kOther, rest_ns});
    // No price is more certain than the replays are: the error is widened so that twice the error reaches what they
    // leave open.
    for (size_t i = 0; i < taken_.size(); ++i)
      for (double* error_ns : {&list_.causes[i].error_ns, &list_.causes[i].joint_error_ns})
        *error_ns = std::hypot(*error_ns, rest_ns / 2);
  }

  // Adds the causes outside the replay and the lines for what is left of a step, so that all lines add up to it.
  void close_account() {
    account_for_rest(*scene_, *model_, all_, counts_, left_);
    std::vector<Cause> beside;
    // Where stages at the end are missing and only the warm-up tells so, what was recognised is an order of fewer
    // stages.
    if (!coverage_.by_warm_up()) add_order_causes(trace_, graph_, theory_, counts_, beside);
    add_between_causes(beside);
    if (!tells_periods() && list_.gap_ns > 0) left_.push_back({"between", "", CellKind::kOther, list_.gap_ns});
    for (Cause& cause : beside) {
      const Gain lost{cause.lost_ns, cause.error_ns};
      const bool between = cause.kind == CauseKind::kBetweenSteps;
      const std::string name = cause.name;
      if (take(cause, list_, false) != Verdict::kTaken) {
        if (between) left_.push_back({"between", name, CellKind::kOther, lost.ns});
        continue;
      }
      list_.together_ns += lost.ns;
      list_.together_error_ns = std::hypot(list_.together_error_ns, lost.error_ns);
    }
    list_.schedule_ns = list_.step_ns - list_.together_ns;
    for (const AccountLine& line : left_) list_.schedule_ns -= line.ns;
    for (const Cause& cause : list_.causes)  // what only a few gaps lost is not part of the usual step
      if (cause.kind == CauseKind::kBetweenSteps && cause.outside) list_.schedule_ns += cause.lost_ns;
    if (!all_.empty()) list_.together_ns += gain_of_all(together_, 0, 1) - gain(together_, 0, 1).ns;
    for (const LongStep& step : list_.long_steps)
      list_.together_ns += step.excess_ns / static_cast<double>(std::max<int64_t>(list_.all_steps, 1));
    list_.left = std::move(left_);
  }

  void add_between_causes(std::vector<Cause>& beside) {
    const bool optimizers =
        std::any_of(graph_.kind.begin(), graph_.kind.end(), [](CellKind kind) { return kind == CellKind::kOptimizer; });
    for (Cause& cause : between_causes(periods_)) {
      const bool usual = !cause.sometimes;
      std::vector<double> by_step(list_.step_numbers.size(), kNaN);
      for (size_t i = 0; i < by_step.size(); ++i)
        if (const auto at = cause.held_ns.find(list_.step_numbers[i]); at != cause.held_ns.end())
          by_step[i] = at->second;
      cause.lost_course = when_lost(cause, by_step);
      cause.guessed = usual && !optimizers && cause.name.empty();  // the optimizer may be what fills the gap
      // A gap that nobody named and that is shorter than a cell belongs to every training loop. As much of a longer gap
      // may belong to it too.
      if (usual && cause.name.empty()) cause.error_ns = shortest_ns_ / 2;
      const bool short_one = cause.name.empty() && periods_.usual_ns < shortest_ns_;
      if (usual && (short_one || coverage_.replicas_unread() > 0 ||
                    periods_.usual_ns < (cause.guessed ? kMinTail : kMinGap) * list_.step_ns))
        left_.push_back({"between", cause.name, CellKind::kOther, cause.lost_ns});
      else
        beside.push_back(std::move(cause));
    }
  }

  const Trace& trace_;
  const StepGraph& graph_;
  const TheoryRun& theory_;
  const RunCoverage& coverage_;
  const PipelineSums& sums_;
  const StepMeans& times_;
  const StepPeriods no_periods_{};
  const StepPeriods& periods_;
  CauseList list_;
  std::vector<bool> counts_;      // for each step of the graph
  std::vector<double> recorded_;  // times of the steps that counted from the beginning
  std::optional<CauseScene> scene_;
  std::optional<CauseWorlds> model_;
  std::vector<CauseDraft> drafts_;
  std::vector<DraftWorlds> worlds_of_;  // for each draft
  std::vector<size_t> with_more_data_;  // indexes of drafts whose replica is slow as a whole
  size_t data_ = 0;                     // index of the draft of uneven data; drafts_.size(): none
  double shortest_ns_ = 0;
  WorldTimes each_, together_;
  World all_;                                     // without all causes that were kept
  std::vector<size_t> taken_;                     // for each of list_.causes the index of its draft
  std::vector<std::pair<Cause, size_t>> little_;  // what costs little, and the index of its draft
  std::vector<Joint> joints_;
  std::vector<AccountLine> left_;
};

struct CausesFact {
  using Value = CauseList;
  static Value make(const Run& run) {
    const RunGraph& made = graph_of(run, LaunchRule::kInOrder);
    return made.graph ? Search(run, *made.graph).list() : CauseList{};
  }
};

}  // namespace

const CauseList& causes_of(const Run& run) { return run.fact<CausesFact>(); }

}  // namespace stageline
