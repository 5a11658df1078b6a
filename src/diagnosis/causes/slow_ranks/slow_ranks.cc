// Slow ranks together: those of a replica, of a machine, or several with the same excess. The search below finds
// replicas that all differ, that of slow_rank the others.
#include "diagnosis/causes/replica_levels.h"
#include "diagnosis/causes/telling.h"

namespace stageline {
namespace {

struct SlowRanksOwn {
  // No two replicas are alike, so none of them is the usual one: the replica that the others are compared with.
  int32_t fastest = kUnknown;
  bool graded() const { return fastest != kUnknown; }
};

// The replica that is held up by none, and the one that holds the others up most.
struct Extremes {
  int32_t fastest, slowest;
};

// How much the cells of each replica scatter, where few steps say nothing; otherwise empty.
std::vector<CellTimes::Scatter> scatter_of(const CauseScene& scene) {
  if (!few_steps(scene)) return {};
  return scene.times.scatter(scene.graph.dp_count,
                             [&](uint32_t op) { return static_cast<uint32_t>(std::max(scene.graph.dp(op), 0)); });
}

// Returns the fastest and the slowest of replicas that all differ; nothing where half of them are alike, or where
// neither two steps nor the cells say so of one.
std::optional<Extremes> extremes_of(const ReplicaLevels& levels, const std::vector<CellTimes::Scatter>& cells) {
  constexpr double kErrors = 3;  // standard errors within which two replicas' means may be equal
  Extremes out{levels.by_step.begin()->first, levels.by_step.begin()->first};
  size_t max_alike = 0;
  const auto error = [&](int32_t dp) { return cells.empty() ? levels.error(dp) : levels.mean(dp) * cells[dp].error; };
  for (const auto& [own, values] : levels.by_step) {
    if (known_ratios(values).size() < (cells.empty() ? 2 : 1) || !(error(own) > 0)) return {};
    const double mine = levels.mean(own);
    if (mine < levels.mean(out.fastest)) out.fastest = own;
    if (mine > levels.mean(out.slowest)) out.slowest = own;
    const auto alike = std::ranges::count_if(levels.by_step, [&](const auto& other) {
      const double its = levels.mean(other.first);
      return std::abs(mine - its) <
             std::max((kSlowCause - 1) * std::min(mine, its), kErrors * std::hypot(error(own), error(other.first)));
    });
    max_alike = std::max<size_t>(max_alike, alike);
  }
  if (2 * max_alike > levels.by_step.size()) return {};
  return out;
}

// Returns the ratios of the slowest replica to the fastest, in the steps that know both.
std::vector<double> ratios_of(const ReplicaLevels& levels, const Extremes& extremes) {
  std::vector<double> ratios = levels.by_step.at(extremes.slowest);
  for (size_t s = 0; s < ratios.size(); ++s) ratios[s] /= levels.by_step.at(extremes.fastest)[s];
  std::erase_if(ratios, [](double ratio) { return std::isnan(ratio); });
  return ratios;
}

// The gain of each worker if it were one of the fastest replica, or of the median one.
struct Factors {
  std::vector<double> to_fastest, to_median;      // by worker
  std::map<int32_t, std::vector<int32_t>> ranks;  // by replica, without the fastest
};

// Returns nothing where the stages do not agree: one slow rank does not make a slow replica.
std::optional<Factors> factors_of(const CauseScene& scene, const Ratios& loads, const ReplicaLevels& levels,
                                  int32_t fastest) {
  const auto& workers = scene.times.workers();
  Factors out{std::vector<double>(loads.size(), 1.0), std::vector<double>(loads.size(), 1.0), {}};
  auto means = mapped<double>(levels.by_step, [&](const auto& entry) { return levels.mean(entry.first); });
  const double median = median_of(means);
  std::map<int32_t, double> best;  // by stage: the load of the fastest replica's worker
  for (size_t w = 0; w < loads.size(); ++w)
    if (workers[w].dp == fastest) best[workers[w].stage] = mean_of(known_ratios(loads[w]));
  for (size_t w = 0; w < loads.size(); ++w) {
    const auto& [stage, dp] = std::tie(workers[w].stage, workers[w].dp);
    if (dp == fastest) continue;
    const double own = mean_of(known_ratios(loads[w])), beyond = levels.mean(dp) / levels.mean(fastest) - 1;
    // A stage that the fastest replica did not record is taken to be as much slower as the whole replica is.
    const bool known = best[stage] > 0;
    if (!known && scene.coverage.whole_replica(fastest)) return {};
    if (known && !(own / best[stage] - 1 >= kAlikeSlow / 2 * beyond)) return {};
    out.to_fastest[w] = known ? own / best[stage] : 1 + beyond;
    out.to_median[w] = std::max(1.0, levels.mean(dp) / median);
    out.ranks[dp].push_back(scene.trace.parts[workers[w].part].rank);
  }
  return out;
}

// Returns a world in which the work of each worker takes its time ÷ its factor.
CauseWorld divided_by(const CauseScene& scene, std::vector<double> factors) {
  return [&scene, of = std::make_shared<const std::vector<double>>(std::move(factors))](uint32_t op, double& dur,
                                                                                        double&) {
    if (const uint32_t w = scene.times.worker_of(op); w != CellTimes::kNone) dur /= (*of)[w];
  };
}

Telling tell_graded(const Cause& c, const TellContext& context) {
  Args args = context.args(c);
  args.set("fastest", int64_t{c.own.as<SlowRanksOwn>().fastest}).set("otherwise", context.share(c.price.otherwise_ns));
  return say_cause("ranks.slow", "ranks.slow.graded", args);
}

}  // namespace

// Suspects replicas that all differ: no half of them are alike, so none is the usual one, and stages agree on which are
// slower. All except the fastest are one cause, priced against the fastest; they are divided out of scene.times.
void suspect_slow_ranks(CauseScene& scene, std::vector<Suspect>& out) {
  if (!levels_are_affordable(scene)) return;
  const Ratios loads = scene.times.worker_loads();
  const ReplicaLevels levels = levels_of(scene, loads);
  if (levels.by_step.size() < 3) return;
  const std::vector<CellTimes::Scatter> cells = scatter_of(scene);
  const std::optional<Extremes> extremes = extremes_of(levels, cells);
  if (!extremes) return;
  const std::vector<double> ratios = ratios_of(levels, *extremes);
  const bool certain = cells.empty()
                           ? certainly_slow(ratios)
                           : certainly_slow(mean_of(ratios), cells[extremes->slowest], cells[extremes->fastest]);
  if (!certain || course_of(ratios).varies()) return;
  std::optional<Factors> factors = factors_of(scene, loads, levels, extremes->fastest);
  if (!factors) return;
  Suspect suspect;
  Cause& cause = suspect.cause;
  cause.kind = &slow_ranks_cause;
  for (auto& [dp, ranks] : factors->ranks) {
    std::ranges::sort(ranks);
    cause.places.push_back({.kind = PlaceKind::kReplicas, .ranks = std::move(ranks), .replica = dp});
  }
  // The slowest replica comes first.
  std::ranges::stable_partition(cause.places, [&](const Place& place) { return place.replica == extremes->slowest; });
  cause.own = SlowRanksOwn{.fastest = extremes->fastest};
  cause.figures.ratio = levels.mean(extremes->slowest) / levels.mean(extremes->fastest);
  cause.in_steps = {std::ranges::count_if(ratios, [](double r) { return r >= kSlowCause; }), std::ssize(ratios)};
  cause.certain = true;
  suspect.without = divided_by(scene, factors->to_fastest);
  suspect.otherwise = divided_by(scene, std::move(factors->to_median));
  out.push_back(std::move(suspect));
  for (size_t w = 0; w < loads.size(); ++w) scene.times.even_out(w, factors->to_fastest[w]);
}

Telling tell_slow_ranks(std::span<const Cause* const> causes, const TellContext& context) {
  constexpr size_t kShown = 8;
  const Cause& c = *causes.front();
  Telling telling;
  if (c.own.as<SlowRanksOwn>().graded()) {
    telling = tell_graded(c, context);
  } else {
    std::vector<std::string> ranks, replicas;
    for (const Place& place : c.places) {
      for (const int32_t rank : place.ranks) ranks.push_back(std::to_string(rank));
      if (place.kind == PlaceKind::kReplicas) replicas.push_back(std::to_string(place.replica));
    }
    Args args = context.args(c);
    args.set("group", some_of(ranks, kShown)).set("replicas", some_of(replicas, replicas.size()));
    args.set("machine", c.place().name);
    const char* who = replicas.size() > 1       ? "ranks.slow.replicas"
                      : replicas.size() == 1    ? "ranks.slow.replica"
                      : !c.place().name.empty() ? "ranks.slow.machine"
                                                : "ranks.slow.ranks";
    const Text course = {std::string(args.of("course", false)), std::string(args.of("course", true))};
    args.set("slow", words(who, args));
    args.set("when", !course.empty() ? course : c.sometimes ? words("ranks.slow.when", args) : Text());
    telling = say_cause("ranks.slow", "ranks.slow", args);
  }
  telling.table = {"stragglers", "straggler-workers"};
  return telling;
}

}  // namespace stageline
