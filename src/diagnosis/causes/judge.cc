#include "diagnosis/causes/replica_levels.h"
#include "diagnosis/causes/search.h"

namespace stageline {

using World = CauseWorlds::World;

namespace {

constexpr int64_t kMinEvents = 3;  // with this many, the steps that they hit are not random
constexpr size_t kMaxHidden = 16;  // suspicions that are replayed again without the causes that were found

// Returns whether a cause is not worth saying: it loses too little or, where work can only be evened out, evening out
// saves too little.
bool costs_little(const CausePrice& price, double step_ns, bool evened) {
  const double min = kMinLost * step_ns;
  return !(price.lost_ns >= min) || (evened && price.saving_ns < min && !price.unmovable);
}
// A slow stage that costs enough is named all the same: it is slow, whatever can be done about it.
bool is_unmovable(const Cause& cause, double step_ns) {
  return cause.kind->of_layers && cause.price.saving_ns < kMinLost * step_ns &&
         cause.price.lost_ns >= kMinLost * step_ns;
}

// Counted events are real by themselves, as pauses, which are far longer than cells differ; only their number per step
// is random. A cause that its own search found certain is not noise either.
bool may_be_chance(const Cause& cause, const CauseList& list) {
  const Measured measured = cause.kind->measured;
  const CausePrice& price = cause.price;
  if (measured == Measured::kRecorded) return false;  // nothing was inferred
  // Where only one step lost something, the error is as large as the mean.
  constexpr double kOneStep = 0.999;
  if (cause.certain && price.lost_ns > 0 && !(price.lost_ns < kOneStep * price.error_ns())) return false;
  if (list.steps < 2 && measured == Measured::kInferred) return true;  // one step has no scatter to compare with
  if (measured == Measured::kCounted && cause.figures.count >= kMinEvents && price.lost_ns > price.error_ns())
    return false;
  // Steps may agree on the cost of an excess that is itself not beyond noise.
  const double error_ns = std::hypot(price.error_ns(), price.lost_ns * price.excess_error);
  return !beyond_noise(price.lost_ns, error_ns, list.steps);
}

// The verdict on a suspicion: a cause of the list, one within noise, or too little to mention.
enum class Verdict : uint8_t { kTaken, kDoubtful, kLittle };

// `beside` is what the cause costs once all others of its group are gone: of two equally slow stages, each alone saves
// nothing.
Verdict take(Cause& cause, CauseList& list, bool evened, const Gain& beside = {}) {
  CausePrice& price = cause.price;
  const Gain alone{price.lost_ns, price.lost_error_ns};
  if (beside.ns > alone.ns) price.lost_ns = beside.ns, price.lost_error_ns = beside.error_ns;
  if (evened && is_unmovable(cause, list.step_ns)) price.unmovable = true, price.saving_ns = 0;
  const bool little = costs_little(price, list.step_ns, evened);
  // A stage that nothing can be moved from is reported by its cost alone, whose interval must not include 0.
  const double half_ns = price.half_interval_ns(price.lost_ns, price.lost_error_ns, list.steps);
  const bool sure = !may_be_chance(cause, list) && (!price.unmovable || price.lost_ns > half_ns);
  price.lost_ns = alone.ns, price.lost_error_ns = alone.error_ns;
  if (little) return Verdict::kLittle;
  (sure ? list.causes : list.doubtful).push_back(std::move(cause));
  return sure ? Verdict::kTaken : Verdict::kDoubtful;
}

class Judge {
 public:
  Judge(const Search& search, const PricedSuspects& priced, Kept& kept)
      : search_(search), list_(search.list), priced_(priced), kept_(kept) {}

  // Keeps suspicions that cost enough above noise.
  void judge_each() {
    for (size_t s = 0; s < priced_.all.size(); ++s) {
      const PricedSuspects::Worlds& of = priced_.worlds[s];
      Cause cause = priced_.all[s].cause;
      const CauseUse use = cause.kind->judge ? cause.kind->judge(cause, search_.facts) : CauseUse::kCause;
      if (use == CauseUse::kLine) kept_.lines.push_back(line_of(cause));
      if (use != CauseUse::kCause) continue;
      const bool hidden = cause.price.lost_ns < kMinLost * list_.step_ns;
      Gain last;
      if (of.all_gone > 0 && (cause.together.role == Together::Role::kLeads || none_alone(s) || is_as_slow(s)))
        last = search_.gain(priced_.times, of.others_gone, of.all_gone);
      switch (take(cause, list_, of.evened > 0 && priced_.all[s].evened != priced_.all[s].without, last)) {
        case Verdict::kTaken:
          list_.causes.back().lost_course = when_lost(list_.causes.back(), lost_by_step(s));
          keep(s);
          break;
        case Verdict::kDoubtful:
          // A step that is long only for this cause proves that it is there, however much its mean scatters. So does a
          // loss that comes from one step on, in every n-th, or more with each: it scatters because it has that shape.
          if (!explains_long_step(s) && !lost_in_shape(s) && !is_of_data(list_.doubtful.back())) break;
          list_.causes.push_back(std::move(list_.doubtful.back()));
          list_.doubtful.pop_back();
          keep(s);
          break;
        case Verdict::kLittle:
          if ((hidden || of.evened > 0) && kept_.little.size() < kMaxHidden)
            kept_.little.emplace_back(std::move(cause), s);
      }
    }
  }

  // Returns whether a cause was added.
  bool look_behind() {
    struct Behind {
      size_t index;                    // of `little` or, behind these, of `taken`
      size_t others, without, evened;  // worlds; evened 0: there is none
    };
    std::vector<Behind> behind;
    std::vector<World> worlds = {{}, kept_.gone};
    const auto add = [&](World world, const CauseWorld& change) {
      if (!change) return size_t{0};
      world.push_back(change);
      worlds.push_back(std::move(world));
      return worlds.size() - 1;
    };
    const auto look = [&](size_t index, const Suspect& suspect, const World& others, size_t at) {
      const size_t without = add(others, suspect.without);
      behind.push_back({index, at, without, add(others, suspect.evened)});
    };
    for (size_t i = 0; i < kept_.little.size(); ++i) look(i, priced_.all[kept_.little[i].second], kept_.gone, 1);
    for (size_t i = 0; i < kept_.taken.size(); ++i) {
      if (!list_.causes[i].price.unmovable || kept_.taken.size() == 1) continue;
      const Suspect& own = priced_.all[kept_.taken[i]];
      World others;
      std::ranges::copy_if(kept_.gone, std::back_inserter(others),
                           [&](const CauseWorld& world) { return world != own.without; });
      worlds.push_back(others);
      look(i, own, others, worlds.size() - 1);
    }
    if (behind.empty()) return false;
    list_.hidden.clear();
    std::vector<std::pair<Cause, size_t>> left;
    const WorldTimes times = search_.model.replay(worlds);
    const double min = kMinLost * list_.step_ns;
    for (size_t i = 0; i < behind.size(); ++i) {
      const Behind& b = behind[i];
      const Gain then = search_.gain(times, b.others, b.without);
      const double evened_ns = b.evened > 0 ? search_.gain(times, b.others, b.evened).ns : 0;
      const bool movable = evened_ns >= min;
      if (i >= kept_.little.size()) {
        if (then.ns >= min && movable) list_.causes[b.index].price.movable_ns = evened_ns;
        continue;
      }
      Cause cause = kept_.little[i].first;
      CausePrice& price = cause.price;
      const bool enough_alone = price.lost_ns >= min;
      if (then.ns >= min && enough_alone && movable && cause.kind->of_layers && !may_be_chance(cause, list_)) {
        price.unmovable = true, price.saving_ns = 0, price.movable_ns = evened_ns;
        list_.causes.push_back(std::move(cause));
        keep(kept_.little[i].second);
        continue;
      }
      left.push_back(kept_.little[i]);
      price.lost_ns = then.ns, price.lost_error_ns = then.error_ns;
      if (then.ns >= min && (!enough_alone || movable) && !may_be_chance(cause, list_))
        list_.hidden.push_back(std::move(cause));
    }
    const bool added = left.size() < kept_.little.size();
    kept_.little = std::move(left);
    return added;
  }

 private:
  // Returns whether no suspicion of the group alone saves half of what all of them save. One that does comes first and
  // hides the others.
  bool none_alone(size_t suspect) const {
    constexpr double kHalf = 0.5;
    const double together_ns = search_.gain(priced_.times, 0, priced_.worlds[suspect].all_gone).ns;
    for (size_t s = 0; s < priced_.all.size(); ++s)
      if (priced_.all[s].cause.together.id == priced_.all[suspect].cause.together.id &&
          search_.gain(priced_.times, 0, priced_.worlds[s].without).ns >= kHalf * together_ns)
        return false;
    return true;
  }

  // Returns whether a stage is about as slow as the slowest one: both are one cause, whichever of them hides the other.
  bool is_as_slow(size_t suspect) const {
    const Cause& own = priced_.all[suspect].cause;
    double max = 1;
    for (const Suspect& other : priced_.all)
      if (other.cause.kind == own.kind) max = std::max(max, other.cause.figures.ratio);
    return own.kind->of_layers && own.figures.ratio - 1 >= kAlikeSlow * (max - 1);
  }

  bool explains_long_step(size_t suspect) const {
    const CountedSteps& steps = search_.steps;
    if (steps.all()) return false;
    const double usual_ns = median_of(steps.usual_ns);
    for (size_t s = 0; s < steps.counts.size(); ++s) {
      const double span_ns = search_.scene.graph.steps[s].span_ns;
      const double without_ns = span_ns - priced_.times.ns(s, 0) + priced_.times.ns(s, priced_.worlds[suspect].without);
      if (!steps.counts[s] && steps.complete[s] && without_ns < kOutlierStep * usual_ns) return true;
    }
    return false;
  }

  // Returns whether the loss follows a shape over the steps. A few events fit one by chance.
  bool lost_in_shape(size_t suspect) const {
    if (priced_.all[suspect].cause.kind->measured == Measured::kCounted) return false;
    const Course course = course_of(lost_by_step(suspect));
    const bool two_levels = course.kind == CourseKind::kOnset || course.kind == CourseKind::kEvery;
    return course.kind == CourseKind::kTrend || (two_levels && std::cmp_greater_equal(course.high_count, kMinEvents));
  }

  // Where work varies with the data, the work of each rank in a few steps varies too. A rank that is not slow beyond
  // that is a part of this cause. Returns true if it is.
  bool is_of_data(Cause& cause) const {
    if (cause.course.varies() || (cause.kind != &slow_rank_cause && cause.kind != &slow_ranks_cause)) return false;
    const auto leads = [](const Cause& c) {
      return c.kind == &uneven_data_cause && c.together.role == Together::Role::kLeads;
    };
    if (std::ranges::none_of(list_.causes, leads)) return false;
    cause.together = {uneven_data_cause.id, Together::Role::kPartOf};
    return true;
  }

  std::vector<double> lost_by_step(size_t suspect) const {
    const std::vector<bool>& counts = search_.steps.counts;
    std::vector<double> by_step(counts.size(), kNaN);
    for (size_t s = 0; s < counts.size(); ++s)
      if (counts[s]) by_step[s] = priced_.times.ns(s, 0) - priced_.times.ns(s, priced_.worlds[suspect].without);
    return by_step;
  }

  void keep(size_t suspect) {
    kept_.gone.push_back(priced_.all[suspect].without);
    kept_.taken.push_back(suspect);
  }

  const Search& search_;
  CauseList& list_;
  const PricedSuspects& priced_;
  Kept& kept_;
};

}  // namespace

Kept judge_each(const Search& search, const PricedSuspects& priced) {
  Kept kept;
  Judge(search, priced, kept).judge_each();
  return kept;
}

void look_behind(const Search& search, const PricedSuspects& priced, Kept& kept) {
  Judge judge(search, priced, kept);
  while (!kept.gone.empty() && judge.look_behind()) {
  }
}

bool take_known(const Search& search, Cause& cause) { return take(cause, search.list, false) == Verdict::kTaken; }

AccountLine line_of(const Cause& cause) {
  const Place& place = cause.place();
  const CellKind kind = place.kind == PlaceKind::kOptimizer    ? CellKind::kOptimizer
                        : place.kind == PlaceKind::kCollective ? CellKind::kCollective
                                                               : CellKind::kOther;
  return {cause.kind->takes_from.front(), place.name, kind, cause.price.lost_ns};
}

Course when_lost(const Cause& cause, const std::vector<double>& by_step) {
  if (cause.course.varies()) return {};
  Course course = course_of(by_step);
  const auto [low, high] = std::minmax(course.low, course.high);
  const bool two_levels = course.kind == CourseKind::kOnset || course.kind == CourseKind::kEvery;
  const bool plain =
      two_levels ? low <= kNextToNothing * high : course.kind == CourseKind::kTrend && low <= 2 * kNextToNothing * high;
  return high > 0 && plain ? course : Course{};
}

}  // namespace stageline
