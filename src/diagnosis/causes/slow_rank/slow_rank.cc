// Slow ranks, alone or together: their compute takes longer than that of their peers, the ranks of the same stage in
// other replicas.
#include "diagnosis/causes/replica_levels.h"
#include "diagnosis/causes/telling.h"

namespace stageline {
namespace {

struct SlowRankOwn {
  bool of_peers_too = true;  // ranks of its stage and replica are not distinguished from it
};

// A worker's step is slow if its ratio exceeds 1 by this many times the scatter of ratios of equal workers.
constexpr double kScatters = 5;
// A quarter of all normally distributed values lie within this many standard deviations.
constexpr double kQuarter = 0.3186;
constexpr int64_t kMinSlowSteps = 3;    // fewer are single outliers
constexpr double kMaxSlowSteps = 0.75;  // share of all steps; if more are slow, the worker is slow all the time

struct Slow {
  size_t worker = 0;
  double ratio = 1, mean = 1;  // mean over the steps in which it is slow; over all steps
  int64_t slow_in = 0, steps = 0;
  double excess_error = 0;  // CausePrice::excess_error
  bool certain = false, sometimes = false;
  Course course = {};
  std::vector<bool> slow_at = {};  // where it is slow in some steps: whether it is, for each step of the graph
};

// A worker that is slow in all steps alike, by its known ratios.
Slow slow_throughout(size_t worker, const std::vector<double>& ratios, bool certain) {
  const double mean = mean_of(ratios);
  return {.worker = worker,
          .ratio = mean,
          .mean = mean,
          .slow_in = std::ranges::count_if(ratios, [](double r) { return r >= kSlowCause; }),
          .steps = std::ssize(ratios),
          .excess_error = excess_error(ratios),
          .certain = certain};
}

using ByStage = std::map<int32_t, std::vector<size_t>>;  // workers of each stage

// If two of three workers of a stage are slow, one of them is half of what the other is compared with. So workers that
// are slow beyond doubt are compared again, with those of the stage that are not slow.
//
//     load           1.3   1.0   1.3
//     to the others  1.13  0.77  1.13     medians 1.15, 1.3, 1.15
//     once more      1.30  0.77  1.30
void leave_slow_peers_out(const std::vector<std::vector<double>>& loads, const std::vector<size_t>& workers,
                          Ratios& ratios) {
  std::vector<size_t> slow, others;
  for (const size_t w : workers) {
    const std::vector<double> values = known_ratios(ratios[w]);
    const bool is_slow = mean_of(values) >= kSlowCause && certainly_slow(values);
    (is_slow ? slow : others).push_back(w);
  }
  if (slow.size() < 2) return;
  for (size_t s = 0; s < ratios[slow.front()].size(); ++s) {
    std::vector<double> beside;
    for (const size_t w : others)
      if (!std::isnan(ratios[w][s])) beside.push_back(loads[w][s]);
    if (beside.empty()) continue;
    const double usual = median_of(std::move(beside));
    for (const size_t w : slow)
      if (!std::isnan(ratios[w][s]) && usual > 0) ratios[w][s] = loads[w][s] / usual;
  }
}

// In all steps, also those that do not count.
Ratios ratios_to_peers(const CauseScene& scene, const ByStage& by_stage) {
  const auto loads = scene.times.worker_loads(true);
  Ratios ratios(loads.size(), std::vector<double>(scene.graph.steps.size(), std::nan("")));
  for (const auto& [stage, workers] : by_stage) {
    for (size_t s = 0; s < scene.graph.steps.size(); ++s) {
      std::vector<double> sorted;
      for (const size_t w : workers)
        if (!std::isnan(loads[w][s])) sorted.push_back(loads[w][s]);
      if (sorted.size() < 2) continue;
      std::ranges::sort(sorted);
      for (const size_t w : workers) {
        if (std::isnan(loads[w][s])) continue;
        const double others = median_beside(sorted, loads[w][s]);
        if (others > 0) ratios[w][s] = loads[w][s] / others;
      }
    }
    leave_slow_peers_out(loads, workers, ratios);
  }
  return ratios;
}

// The ratios in the steps that show whether a worker is slow: all but those that something else makes long. A step that
// another rank did not record shows it too.
Ratios in_usual_steps(const CauseScene& scene, Ratios ratios) {
  std::vector<double> spans;
  for (size_t s = 0; s < scene.counts.size(); ++s)
    if (scene.counts[s]) spans.push_back(scene.graph.steps[s].span_ns);
  const double limit_ns = kOutlierStep * median_of(std::move(spans));
  for (size_t s = 0; s < scene.counts.size(); ++s)
    if (!scene.counts[s] && scene.graph.steps[s].span_ns >= limit_ns)
      for (std::vector<double>& own : ratios) own[s] = kNaN;
  return ratios;
}

// By how much a ratio must exceed 1 in a slow step: more than ratios of the stage's workers scatter. The quarter of
// them that is nearest to 1 gives that scatter, whichever worker is slow in however many steps.
double slow_beyond(const Ratios& ratios, const std::vector<size_t>& workers) {
  std::vector<double> off;
  for (const size_t w : workers)
    for (const double r : ratios[w])
      if (!std::isnan(r)) off.push_back(std::abs(r - 1));
  if (off.empty()) return kSlowCause - 1;
  const auto quarter = off.begin() + off.size() / 4;
  std::nth_element(off.begin(), quarter, off.end());
  return std::max(kSlowCause - 1, kScatters * *quarter / kQuarter);
}

// For each replica and step of the graph, the number of its workers that are slower than their peers.
using SlowOnes = std::map<int32_t, std::vector<int32_t>>;

bool rather_slow(double ratio) { return ratio - 1 >= (kSlowCause - 1) / 2; }

SlowOnes slow_ones(const CauseScene& scene, const Ratios& ratios) {
  SlowOnes ones;
  for (size_t w = 0; w < ratios.size(); ++w) {
    std::vector<int32_t>& of_replica = ones.try_emplace(scene.times.workers()[w].dp, ratios[w].size(), 0).first->second;
    for (size_t s = 0; s < ratios[w].size(); ++s) of_replica[s] += rather_slow(ratios[w][s]);
  }
  return ones;
}

// A worker that is slow in some steps, as a device is that gets hot. Where most of its replica's workers are slow in
// these steps too, the reason is the micro-batches, and it counts as slow in none.
Slow slow_sometimes(const std::vector<double>& ratios, const std::vector<int32_t>& slow_ones, int32_t of_replica,
                    size_t worker, double beyond) {
  Slow slow{.worker = worker,
            .ratio = 0,
            .mean = mean_of(known_ratios(ratios)),
            .certain = true,
            .sometimes = true,
            .slow_at = std::vector<bool>(ratios.size(), false)};
  int64_t shared = 0;
  for (size_t s = 0; s < ratios.size(); ++s) {
    if (std::isnan(ratios[s])) continue;
    ++slow.steps;
    if (ratios[s] - 1 < beyond) continue;
    ++slow.slow_in;
    slow.slow_at[s] = true;
    slow.ratio += ratios[s];
    shared += 2 * slow_ones[s] > of_replica && slow_ones[s] > 1;  // it is one of them itself
  }
  slow.ratio /= std::max<int64_t>(slow.slow_in, 1);
  if (2 * shared > slow.slow_in) slow.slow_in = 0;
  return slow;
}

// Returns true when the worker is slow for a while only: the slow steps are certain, and an onset is wrong about some.
bool is_over(const Course& onset, const std::vector<double>& ratios, int64_t slow_in) {
  const double middle = (onset.low + onset.high) / 2;
  int64_t high = 0, wrong = 0;
  for (size_t s = 0; s < ratios.size(); ++s) {
    if (std::isnan(ratios[s])) continue;
    const bool is_high = ratios[s] > middle;
    high += is_high, wrong += is_high != (onset.level[s] > middle);
  }
  return wrong > 0 && high == slow_in;
}

// The number of workers of a replica, and of those that are slow all the time.
struct OfReplica {
  size_t workers = 0, slow = 0;
  double beyond = 0;  // sum of the excesses of its slow workers
  bool whole() const { return workers > 0 && slow == workers; }
};
std::map<int32_t, OfReplica> by_replica(const CauseScene& scene, const std::vector<Slow>& slow) {
  std::map<int32_t, OfReplica> replicas;
  for (const CellTimes::Worker& w : scene.times.workers()) ++replicas[w.dp].workers;
  for (const Slow& s : slow) {
    if (s.sometimes) continue;
    OfReplica& replica = replicas[scene.times.workers()[s.worker].dp];
    ++replica.slow, replica.beyond += s.mean - 1;
  }
  return replicas;
}

// Returns whether two workers are slow at the same times. If one becomes slow where the other becomes fast, they have
// different causes.
//
//     rank 5    1.3 1.3 1.3 1.0 1.0 1.0        both change at step 3, and have nothing else in common
//     rank 10   1.0 1.0 1.0 1.3 1.3 1.3
bool same_shape(const Course& a, const Course& b) {
  if (a.kind != b.kind) return false;
  if (!a.varies()) return true;
  if ((a.high > a.low) != (b.high > b.low)) return false;
  if (a.kind == CourseKind::kTrend) return true;
  double both = 0, any = 0;
  for (size_t s = 0; s < std::min(a.level.size(), b.level.size()); ++s) {
    const bool in_a = 2 * a.level[s] > a.low + a.high, in_b = 2 * b.level[s] > b.low + b.high;
    both += in_a && in_b, any += in_a || in_b;
  }
  return both >= kAlikeSlow * any;
}

// Returns how slow a worker is in the steps that its shape calls slow; without a shape, in those that were found slow.
double slow_ratio(const CauseScene& scene, const Slow& one) {
  if (!one.course.varies()) return one.ratio;
  double sum = 0, steps = 0;
  for (size_t s = 0; s < one.course.level.size(); ++s)
    if (scene.counts[s] && one.course.level[s] >= kSlowCause) sum += one.course.level[s], ++steps;
  return steps > 0 ? sum / steps : one.ratio;
}

// Groups slow workers that are one cause: all stages of a replica, workers of one machine, or several with the same
// excess. They must be joined, because one of them alone changes nothing while the others hold the step up.
std::vector<std::vector<Slow>> slow_together(const CauseScene& scene, const std::vector<Slow>& slow) {
  const auto machine = [&](const Slow& s) -> const std::string& {
    return scene.trace.parts[scene.times.workers()[s.worker].part].machine_name;
  };
  std::map<std::string, size_t> workers_of;  // for each machine
  for (const CellTimes::Worker& w : scene.times.workers()) ++workers_of[scene.trace.parts[w.part].machine_name];
  const auto same_steps = [&](const Slow& a, const Slow& b) {
    double both = 0, any = 0;
    for (size_t s = 0; s < a.slow_at.size(); ++s)
      both += a.slow_at[s] && b.slow_at[s], any += a.slow_at[s] || b.slow_at[s];
    return both >= kAlikeSlow * any;
  };
  const auto together = [&](const Slow& a, const Slow& b) {
    if (a.sometimes != b.sometimes || !same_shape(a.course, b.course)) return false;
    if (a.sometimes && !same_steps(a, b)) return false;
    const double more = std::max(a.mean, b.mean) - 1, less = std::min(a.mean, b.mean) - 1;
    const bool same_replica = scene.times.workers()[a.worker].dp == scene.times.workers()[b.worker].dp;
    const bool same_machine = !machine(a).empty() && machine(a) == machine(b) && workers_of.size() > 1;
    return less >= kAlikeSlow * more || (less >= kAlikeSlow / 2 * more && (same_replica || same_machine));
  };
  // Where all workers of a replica are slow, the cause is the replica as a whole: graded data, or a machine of its own.
  const std::map<int32_t, OfReplica> replicas = by_replica(scene, slow);
  const auto whole_replica = [&](const Slow& s) {
    const OfReplica& own = replicas.at(scene.times.workers()[s.worker].dp);
    return own.workers > 1 && own.whole() && !s.sometimes;
  };
  const auto alike = [&](const Slow& a, const Slow& b) {
    if (whole_replica(a) != whole_replica(b)) return false;
    if (!whole_replica(a)) return together(a, b);
    const int32_t own = scene.times.workers()[a.worker].dp, other = scene.times.workers()[b.worker].dp;
    const auto [less, more] = std::minmax(replicas.at(own).beyond, replicas.at(other).beyond);
    return own == other || (less >= kAlikeSlow * more && same_shape(a.course, b.course));
  };
  std::vector<std::vector<Slow>> groups;
  for (const Slow& one : slow) {  // the slowest first
    const auto group = std::ranges::find_if(groups, [&](const auto& g) { return alike(g.front(), one); });
    if (group == groups.end()) groups.push_back({one});
    else group->push_back(one);
  }
  return groups;
}

// Returns true when the cells of a worker and of its peers, or of a replica and of the others, prove that it is slow.
bool by_its_cells(double ratio, const std::vector<CellTimes::Scatter>& scatter, const std::vector<size_t>& all,
                  size_t own) {
  CellTimes::Scatter others;  // the peer whose cells say least
  for (const size_t w : all)
    if (w != own && !(scatter[w].error < others.error)) others = scatter[w];
  return certainly_slow(ratio, scatter[own], others);
}

// Adds the other workers of a replica that as a whole is slow above noise, although not each worker is.
void add_whole_replicas(const CauseScene& scene, const Ratios& ratios, std::vector<Slow>& slow) {
  const ReplicaLevels levels = levels_of(scene, ratios);
  const std::map<int32_t, OfReplica> replicas = by_replica(scene, slow);
  std::vector<CellTimes::Scatter> scatter;
  if (few_steps(scene))
    scatter = scene.times.scatter(scene.graph.dp_count,
                                  [&](uint32_t op) { return static_cast<uint32_t>(scene.graph.dp(op)); });
  auto all_replicas = indexes(scatter.size());
  for (const auto& [dp, by_step] : levels.by_step) {
    if (replicas.at(dp).workers < 2 || replicas.at(dp).whole()) continue;
    const std::vector<double> values = known_ratios(by_step);
    const int64_t steps = values.size();
    const bool by_steps = steps > 1 && beyond_noise(levels.mean(dp) - 1, levels.error(dp), steps);
    const bool by_cells =
        dp >= 0 && std::cmp_less(dp, scatter.size()) && by_its_cells(levels.mean(dp), scatter, all_replicas, dp);
    if (levels.mean(dp) < kSlowCause || !(by_steps || by_cells)) continue;
    std::vector<Slow> others;
    bool all = true;
    for (size_t w = 0; w < ratios.size() && all; ++w) {
      if (scene.times.workers()[w].dp != dp) continue;
      const auto own = std::ranges::find_if(slow, [&](const Slow& s) { return s.worker == w; });
      const std::vector<double> of_worker = known_ratios(ratios[w]);
      const double mean = mean_of(of_worker);
      // Each must be about as slow as the replica, as far as can be determined; otherwise not the whole replica is
      // slow.
      all = own != slow.end() ? !own->sometimes && !own->course.varies()
                              : !of_worker.empty() && mean - 1 >= kAlikeSlow / 2 * (levels.mean(dp) - 1);
      if (all && own == slow.end()) others.push_back(slow_throughout(w, of_worker, by_cells || certainly_slow(values)));
    }
    if (all) slow.insert(slow.end(), others.begin(), others.end());
  }
}

// Ranks that are slow together: whole replicas, the ranks of one machine, or any.
std::vector<Place> places_of(const Trace& trace, std::vector<int32_t> parts, bool whole_replica) {
  std::ranges::sort(parts);
  std::map<int32_t, std::vector<int32_t>> by_replica;
  std::set<std::string> machines;
  Place all{.kind = PlaceKind::kRanks};
  for (const int32_t p : parts) {
    const Part& part = trace.parts[p];
    all.ranks.push_back(part.rank);
    by_replica[part.dp].push_back(part.rank);
    machines.insert(part.machine_name);
  }
  size_t ranks_of_them = 0, replicas = 1;
  for (const Part& part : trace.parts) {
    ranks_of_them += by_replica.contains(part.dp);
    replicas = std::max<size_t>(replicas, part.dp + 1);
  }
  if (whole_replica || (by_replica.size() < replicas && parts.size() == ranks_of_them)) {
    std::vector<Place> places;
    for (auto& [dp, ranks] : by_replica)
      places.push_back({.kind = PlaceKind::kReplicas, .ranks = std::move(ranks), .replica = dp});
    return places;
  }
  if (machines.size() == 1) all.name = *machines.begin();
  return {all};
}

// Workers that are slower than the others of their stage: in some steps, from a step on or more with every step, or
// throughout.
std::vector<Slow> find_slow(const CauseScene& scene, const Ratios& ratios, const Ratios& all, const ByStage& by_stage) {
  const SlowOnes ones = slow_ones(scene, ratios);
  std::vector<CellTimes::Scatter> scatter;
  if (few_steps(scene))
    scatter = scene.times.scatter(ratios.size(), [&](uint32_t op) { return scene.times.worker_of(op); });
  std::map<int32_t, int32_t> workers_of;  // for each replica, the number of its workers
  for (const CellTimes::Worker& worker : scene.times.workers()) ++workers_of[worker.dp];
  std::vector<Slow> slow;
  for (const auto& [stage, workers] : by_stage) {
    if (workers.size() < 2) continue;
    const double beyond = slow_beyond(ratios, workers);
    for (const size_t w : workers) {
      const std::vector<double> values = known_ratios(ratios[w]);
      if (values.empty()) continue;
      const int64_t steps = values.size();
      Course course = course_of(ratios[w]);
      if (slow_course(course) && !holds_excess(course, ratios[w])) course = {};
      const int32_t dp = scene.times.workers()[w].dp;
      const Slow now_and_then = slow_sometimes(ratios[w], ones.at(dp), workers_of.at(dp), w, beyond);
      const bool onset = course.kind == CourseKind::kOnset && !is_over(course, ratios[w], now_and_then.slow_in);
      const bool shaped = slow_course(course) && (onset || course.kind == CourseKind::kTrend);
      if (!shaped && now_and_then.slow_in >= kMinSlowSteps && now_and_then.slow_in <= kMaxSlowSteps * steps) {
        slow.push_back(now_and_then);
        continue;
      }
      const bool by_cells = !scatter.empty() && by_its_cells(mean_of(values), scatter, workers, w);
      Slow own = slow_throughout(w, values, shaped || by_cells || certainly_slow(values));
      const double error = sample_std(values) / std::sqrt(steps);
      const bool by_steps = steps > 1 && beyond_noise(own.mean - 1, error, steps);
      if (!shaped && (own.mean < kSlowCause || !(by_cells || by_steps))) continue;
      see_all_steps(course, ratios[w], all[w]);
      if (slow_course(course)) own.course = course;
      slow.push_back(std::move(own));
    }
  }
  add_whole_replicas(scene, ratios, slow);
  sort_stably(slow, std::greater(), &Slow::mean);
  return slow;
}

// Handles slow workers whose single cells scatter far more than those of peers, as on a device that throttles for parts
// of a step. No factor makes such cells usual, so this finds the time of a cell of each place on peers that are not
// slow.
std::map<size_t, std::vector<double>> usual_of_erratic(const CauseScene& scene, const std::vector<Slow>& slow) {
  constexpr double kFarMore = 3;
  std::map<size_t, std::vector<double>> usual;
  if (slow.empty()) return usual;
  const std::vector<CellTimes::Worker>& workers = scene.times.workers();
  const std::vector<CellTimes::Scatter> scatter =
      scene.times.scatter(workers.size(), [&](uint32_t op) { return scene.times.worker_of(op); });
  const auto is_slow = [&](size_t worker) {
    return std::ranges::any_of(slow, [&](const Slow& one) { return one.worker == worker; });
  };
  for (const Slow& one : slow) {
    std::vector<size_t> peers;
    double max = 0;
    for (size_t w = 0; w < workers.size(); ++w)
      if (workers[w].stage == workers[one.worker].stage && !is_slow(w))
        peers.push_back(w), max = std::max(max, scatter[w].error);
    if (one.sometimes || one.course.varies() || peers.empty() || !(scatter[one.worker].error > kFarMore * max))
      continue;
    std::vector<double> sum(scene.times.place_count()), count(sum.size());
    scene.each_op([&](uint32_t op, size_t) {
      if (std::ranges::find(peers, scene.times.worker_of(op)) == peers.end()) return;
      sum[scene.times.place_of(op)] += scene.graph.dur_ns[op], ++count[scene.times.place_of(op)];
    });
    for (size_t place = 0; place < sum.size(); ++place) sum[place] /= count[place];  // 0 ÷ 0: NaN
    usual[one.worker] = std::move(sum);
  }
  return usual;
}

// Makes the operations of these workers as fast as those of their peers.
CauseWorld as_fast_as_peers(const CauseScene& scene, const std::vector<Slow>& group,
                            const std::shared_ptr<const Ratios>& ratios,
                            const std::map<size_t, std::vector<double>>& erratic) {
  return [&scene, group, ratios, erratic](uint32_t op, double& dur, double&) {
    for (const Slow& one : group) {
      if (scene.times.worker_of(op) != one.worker) continue;
      if (const auto usual = erratic.find(one.worker); usual != erratic.end()) {
        if (const double ns = usual->second[scene.times.place_of(op)]; ns < dur) dur = ns;
        continue;
      }
      if (one.course.varies()) dur /= course_factor(one.course, step_of(scene.graph, op));
      else if (!one.sometimes) dur /= one.ratio;
      else if (const size_t s = step_of(scene.graph, op); (*ratios)[one.worker][s] >= kSlowCause)
        dur /= scene.counts[s] ? (*ratios)[one.worker][s] : std::min((*ratios)[one.worker][s], one.ratio);
    }
  };
}

// One slow worker, or several that are slow together, the slowest first.
Cause cause_of(const CauseScene& scene, const std::vector<Slow>& group, bool whole_replica) {
  const Slow& slowest = group.front();
  const CellTimes::Worker& worker = scene.times.workers()[slowest.worker];
  Cause cause;
  cause.kind = group.size() > 1 ? &slow_ranks_cause : &slow_rank_cause;
  cause.sometimes = slowest.sometimes;
  cause.course = slowest.course;
  cause.in_steps = {slowest.slow_in, slowest.steps};
  if (slowest.course.varies()) {  // counts the steps in which it is slow
    cause.in_steps.count = 0;
    for (size_t s = 0; s < slowest.course.level.size(); ++s)
      cause.in_steps.count += scene.counts[s] && slowest.course.level[s] >= kSlowCause;
    cause.sometimes = cause.in_steps.count > 0;
  }
  std::vector<int32_t> parts;
  for (const Slow& one : group) {
    parts.push_back(scene.times.workers()[one.worker].part);
    cause.figures.ratio += slow_ratio(scene, one) / group.size();
    cause.certain = cause.certain || one.certain;
    if (!one.course.varies()) cause.price.excess_error = std::max(cause.price.excess_error, one.excess_error);
  }
  cause.figures.rank = scene.trace.parts[worker.part].rank, cause.figures.stage = worker.stage;
  if (group.size() > 1) {
    cause.places = places_of(scene.trace, std::move(parts), whole_replica);
  } else {
    cause.places = {
        {.kind = PlaceKind::kRanks, .ranks = {cause.figures.rank}, .stage = worker.stage, .replica = worker.dp}};
    cause.figures.count = cause.in_steps.count, cause.figures.of = cause.in_steps.all;
    cause.own = SlowRankOwn{.of_peers_too = !scene.times.peers_apart()};
  }
  // A replica that has more work in every step may be slow because of its data.
  if (whole_replica && !cause.course.varies()) cause.together = {"uneven_data", Together::Role::kFollows};
  return cause;
}

}  // namespace

// Compares each worker with the same stage's workers in other replicas.
void suspect_slow_rank(CauseScene& scene, std::vector<Suspect>& out) {
  const std::vector<CellTimes::Worker>& workers = scene.times.workers();
  if (!levels_are_affordable(scene)) return;
  ByStage by_stage;
  for (size_t w = 0; w < workers.size(); ++w) by_stage[workers[w].stage].push_back(w);
  const auto ratios = std::make_shared<const Ratios>(ratios_to_peers(scene, by_stage));
  const std::vector<Slow> slow = find_slow(scene, in_usual_steps(scene, *ratios), *ratios, by_stage);
  const std::map<int32_t, OfReplica> replicas = by_replica(scene, slow);
  std::vector<std::vector<Slow>> groups = slow_together(scene, slow);
  if (groups.size() > kMaxWorkerCauses) groups.resize(kMaxWorkerCauses);
  const std::map<size_t, std::vector<double>> erratic = usual_of_erratic(scene, slow);
  for (const std::vector<Slow>& group : groups) {
    const bool whole = !group.front().sometimes && replicas.at(workers[group.front().worker].dp).whole();
    out.push_back({.cause = cause_of(scene, group, whole), .without = as_fast_as_peers(scene, group, ratios, erratic)});
  }
  for (const Slow& found : slow) {
    scene.times.even_out(found.worker, found.mean);
    if (found.sometimes || found.course.varies()) scene.times.leave_out(found.worker);
  }
}

Telling tell_slow_rank(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  Args args = context.args(c);
  args.set("worker", context.rank(c.figures.rank, c.own.as<SlowRankOwn>().of_peers_too));
  Telling telling = say_cause("rank.slow", "rank.slow", args);
  telling.table = {"stragglers", "straggler-workers"};
  return telling;
}

}  // namespace stageline
