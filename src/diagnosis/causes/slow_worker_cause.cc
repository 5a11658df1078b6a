// Causes in what compute takes: sequences that are long on every stage, and ranks that are slow beside their peers.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include "diagnosis/causes/beyond_noise.h"
#include "diagnosis/causes/cause_drafts.h"
#include "model/stage_costs.h"
#include "model/statistics.h"

namespace stageline {
namespace {

constexpr size_t kMostCells = 10'000'000;  // workers times steps

}  // namespace

void draft_sequences(const CauseScene& scene, std::vector<CauseDraft>& out) {
  const CellTimes::Sequences& all = scene.times.sequences();
  if (!scene.times.sequence_factor_known()) return;
  CauseDraft draft;
  draft.cause.kind = CauseKind::kLongSequences;
  draft.cause.ratio = all.long_factor;
  draft.cause.count = all.long_ones;
  draft.cause.of = all.all;
  draft.without = [&scene](uint32_t op, double& dur, double&) { dur /= scene.times.long_factor(op); };
  draft.evened = [&scene](uint32_t op, double& dur, double&) { dur *= scene.times.even_factor(op); };
  out.push_back(std::move(draft));
}

namespace {

constexpr double kScatters = 5;          // of ratios between workers alike, beyond which a step of one is slow
constexpr double kAlikeSlow = 0.75;      // of the slower one's excess, that ranks slow together have
constexpr double kSureShape = 4;         // of what single steps scatter by, that all become slower by
constexpr double kNearlyAll = 0.9;       // of the workers, that become slower where all do
constexpr double kQuarter = 0.3186;      // standard deviations that a quarter of all normal values are within
constexpr int64_t kLeastSlowSteps = 3;   // fewer are an outlier each
constexpr double kMostSlowSteps = 0.75;  // of all: more, and it is slow all the time

using Ratios = std::vector<std::vector<double>>;  // by worker and step of the graph: to its peers' median; NaN: unknown

struct Slow {
  size_t worker = 0;
  double ratio = 1, mean = 1;  // of the steps in which it is slow; of all
  int64_t slow_in = 0, steps = 0;
  bool certain = false, sometimes = false;
  Course course;
};

Ratios ratios_to_peers(const CauseScene& scene, const std::map<int32_t, std::vector<size_t>>& by_stage) {
  const auto loads = scene.times.worker_loads();
  Ratios ratios(loads.size(), std::vector<double>(scene.graph.steps.size(), std::nan("")));
  for (const auto& [stage, workers] : by_stage)
    for (size_t s = 0; s < scene.graph.steps.size(); ++s) {
      if (!scene.counts[s]) continue;
      std::vector<double> sorted;
      for (const size_t w : workers)
        if (!std::isnan(loads[w][s])) sorted.push_back(loads[w][s]);
      if (sorted.size() < 2) continue;
      std::sort(sorted.begin(), sorted.end());
      for (const size_t w : workers) {
        if (std::isnan(loads[w][s])) continue;
        const auto own =
            static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), loads[w][s]) - sorted.begin());
        const double others = median_of_others(sorted, own);
        if (others > 0) ratios[w][s] = loads[w][s] / others;
      }
    }
  return ratios;
}

std::vector<double> known(const std::vector<double>& ratios) {
  std::vector<double> values;
  std::copy_if(ratios.begin(), ratios.end(), std::back_inserter(values), [](double r) { return !std::isnan(r); });
  return values;
}

// What a ratio is above 1 by in a slow step: more than those of the stage's workers scatter by. The quarter that is
// nearest to 1 tells how much that is, whoever is slow in how many steps.
double slow_beyond(const Ratios& ratios, const std::vector<size_t>& workers) {
  std::vector<double> off;
  for (const size_t w : workers)
    for (const double r : ratios[w])
      if (!std::isnan(r)) off.push_back(std::abs(r - 1));
  if (off.empty()) return kSlowCause - 1;
  const auto quarter = off.begin() + static_cast<std::ptrdiff_t>(off.size() / 4);
  std::nth_element(off.begin(), quarter, off.end());
  return std::max(kSlowCause - 1, kScatters * *quarter / kQuarter);
}

// Workers of a replica that are slower than their peers, by step of the graph.
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

// Slow in some steps, as a device is that gets hot. Where the replica's other stages are slow in these too, it is its
// micro-batches.
Slow slow_sometimes(const std::vector<double>& ratios, const std::vector<int32_t>& slow_ones, size_t worker,
                    double beyond) {
  Slow slow{
      .worker = worker, .ratio = 0, .mean = mean_of(known(ratios)), .certain = true, .sometimes = true, .course = {}};
  int64_t shared = 0;
  for (size_t s = 0; s < ratios.size(); ++s) {
    if (std::isnan(ratios[s])) continue;
    ++slow.steps;
    if (ratios[s] - 1 < beyond) continue;
    ++slow.slow_in;
    slow.ratio += ratios[s];
    shared += slow_ones[s] > 1;  // it is one of them
  }
  slow.ratio /= static_cast<double>(std::max<int64_t>(slow.slow_in, 1));
  if (2 * shared > slow.slow_in) slow.slow_in = 0;
  return slow;
}

// Slow workers that are one: all stages of a replica, those of one machine, or several that are slow by the same.
// Joint, because one of them alone would change nothing while the others hold the step up.
std::vector<std::vector<Slow>> slow_together(const CauseScene& scene, const std::vector<Slow>& slow) {
  const auto machine = [&](const Slow& s) -> const std::string& {
    return scene.trace.parts[static_cast<size_t>(scene.times.workers()[s.worker].part)].machine_name;
  };
  std::map<std::string, size_t> workers_of;  // by machine
  for (const CellTimes::Worker& w : scene.times.workers())
    ++workers_of[scene.trace.parts[static_cast<size_t>(w.part)].machine_name];
  const auto together = [&](const Slow& a, const Slow& b) {
    if (a.sometimes || b.sometimes || a.course.kind != b.course.kind) return false;
    const double more = std::max(a.mean, b.mean) - 1, less = std::min(a.mean, b.mean) - 1;
    const bool same_replica = scene.times.workers()[a.worker].dp == scene.times.workers()[b.worker].dp;
    const bool same_machine = !machine(a).empty() && machine(a) == machine(b) && workers_of.size() > 1;
    return less >= kAlikeSlow * more || (less >= kAlikeSlow / 2 * more && (same_replica || same_machine));
  };
  // Where all stages of a replica are slow it is the replica, as a whole: graded data, one machine each.
  std::map<int32_t, size_t> workers_of_replica, slow_of_replica;
  std::map<int32_t, double> beyond_of_replica;  // what its workers are above 1, in sum
  for (const CellTimes::Worker& w : scene.times.workers()) ++workers_of_replica[w.dp];
  for (const Slow& s : slow) {
    const int32_t dp = scene.times.workers()[s.worker].dp;
    ++slow_of_replica[dp], beyond_of_replica[dp] += s.mean - 1;
  }
  const auto whole_replica = [&](const Slow& s) {
    const int32_t dp = scene.times.workers()[s.worker].dp;
    return workers_of_replica[dp] > 1 && slow_of_replica[dp] == workers_of_replica[dp] && !s.sometimes;
  };
  const auto alike = [&](const Slow& a, const Slow& b) {
    if (whole_replica(a) != whole_replica(b)) return false;
    if (!whole_replica(a)) return together(a, b);
    const int32_t own = scene.times.workers()[a.worker].dp, other = scene.times.workers()[b.worker].dp;
    const auto [less, more] = std::minmax(beyond_of_replica[own], beyond_of_replica[other]);
    return own == other || less >= kAlikeSlow * more;
  };
  std::vector<std::vector<Slow>> groups;
  for (const Slow& one : slow) {  // the slowest first
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return alike(g.front(), one); });
    if (group == groups.end())
      groups.push_back({one});
    else
      group->push_back(one);
  }
  return groups;
}

}  // namespace

// A worker against the same stage's other replicas.
void draft_slow_workers(CauseScene& scene, std::vector<CauseDraft>& out) {
  if (scene.times.workers().size() * scene.graph.steps.size() > kMostCells) return;
  std::map<int32_t, std::vector<size_t>> by_stage;
  for (size_t w = 0; w < scene.times.workers().size(); ++w) by_stage[scene.times.workers()[w].stage].push_back(w);
  const auto ratios = std::make_shared<const Ratios>(ratios_to_peers(scene, by_stage));
  const SlowOnes ones = slow_ones(scene, *ratios);
  std::vector<Slow> slow;
  for (const auto& [stage, workers] : by_stage) {
    if (workers.size() < 2) continue;
    const double beyond = slow_beyond(*ratios, workers);
    for (const size_t w : workers) {
      const std::vector<double> values = known((*ratios)[w]);
      if (values.empty()) continue;
      const auto steps = static_cast<int64_t>(values.size());
      const Course course = course_of((*ratios)[w]);
      const bool shaped =
          slow_course(course) && (course.kind == CourseKind::kOnset || course.kind == CourseKind::kTrend);
      const Slow now_and_then = slow_sometimes((*ratios)[w], ones.at(scene.times.workers()[w].dp), w, beyond);
      if (!shaped && now_and_then.slow_in >= kLeastSlowSteps &&
          static_cast<double>(now_and_then.slow_in) <= kMostSlowSteps * static_cast<double>(steps)) {
        slow.push_back(now_and_then);
        continue;
      }
      const double mean = mean_of(values);
      const double error = sample_std(values) / std::sqrt(static_cast<double>(steps));
      if (!shaped && (mean < kSlowCause || !beyond_noise(mean - 1, error, steps))) continue;
      slow.push_back({w, mean, mean,
                      std::count_if(values.begin(), values.end(), [](double v) { return v >= kSlowCause; }), steps,
                      shaped || certainly_slow(values), false, slow_course(course) ? course : Course{}});
    }
  }
  std::stable_sort(slow.begin(), slow.end(), [](const Slow& a, const Slow& b) { return a.mean > b.mean; });
  const auto faster = [&scene, ratios](const Slow& found, uint32_t op, double& dur) {
    if (scene.times.worker_of(op) != found.worker) return;
    if (found.course.varies()) {
      dur /= course_factor(found.course, step_of(scene.graph, op));
    } else if (!found.sometimes) {
      dur /= found.ratio;
    } else if (const double ratio = (*ratios)[found.worker][step_of(scene.graph, op)]; ratio >= kSlowCause) {
      dur /= ratio;
    }
  };
  size_t told = 0;
  for (const std::vector<Slow>& group : slow_together(scene, slow)) {
    if (told++ == kMostWorkerCauses) break;
    const Slow& found = group.front();
    const CellTimes::Worker& worker = scene.times.workers()[found.worker];
    CauseDraft draft;
    draft.cause.kind = group.size() > 1 ? CauseKind::kSlowGroup : CauseKind::kSlowWorker;
    draft.cause.stage = worker.stage;
    draft.cause.dp = worker.dp;
    draft.cause.part = worker.part;
    draft.cause.slowest_in = found.slow_in;
    draft.cause.steps = found.steps;
    draft.cause.sometimes = found.sometimes;
    draft.cause.course = found.course;
    draft.cause.ratio = 0;
    if (found.course.varies()) {  // how slow in which steps
      double sum = 0;
      draft.cause.slowest_in = 0;
      for (size_t s = 0; s < found.course.level.size(); ++s)
        if (scene.counts[s] && found.course.level[s] >= kSlowCause)
          sum += found.course.level[s], ++draft.cause.slowest_in;
      draft.cause.sometimes = draft.cause.slowest_in > 0;
      if (group.size() == 1 && draft.cause.sometimes)
        draft.cause.ratio = sum / static_cast<double>(draft.cause.slowest_in);
    }
    for (const Slow& one : group) {
      draft.cause.parts.push_back(scene.times.workers()[one.worker].part);
      if (!one.course.varies() || group.size() > 1) draft.cause.ratio += one.ratio / static_cast<double>(group.size());
      draft.cause.certain = draft.cause.certain || one.certain;
    }
    std::sort(draft.cause.parts.begin(), draft.cause.parts.end());
    draft.without = [group, faster](uint32_t op, double& dur, double&) {
      for (const Slow& one : group) faster(one, op, dur);
    };
    out.push_back(std::move(draft));
  }
  for (const Slow& found : slow) {
    scene.times.even_out(found.worker, found.mean);
    if (found.sometimes || found.course.varies()) scene.times.leave_out(found.worker);
  }
}

// Everything, on all ranks, from a step on, more and more, or in every n-th step: heat, a slower file system under a
// lazy loader, longer data, an evaluation or a profiler that comes round.
void draft_all_slow(const CauseScene& scene, std::vector<CauseDraft>& out) {
  const auto loads = scene.times.worker_loads();
  std::vector<double> by_step(scene.graph.steps.size(), std::nan(""));
  for (size_t s = 0; s < by_step.size(); ++s) {
    std::vector<double> values;
    for (const auto& load : loads)
      if (scene.counts[s] && !std::isnan(load[s])) values.push_back(load[s]);
    if (!values.empty()) by_step[s] = median_of(std::move(values));  // whatever one stage does
  }
  Course course = course_of(by_step);
  if (!course.varies() || course.kind == CourseKind::kSome) return;
  if (!(course.high >= kSlowCause * course.low) || course.high - course.low < kSureShape * course.noise) return;
  // All of them: of hardly any worker did the later half of the shape rise by less than half of that.
  const double middle = (course.low + course.high) / 2;
  size_t rose = 0, known_ones = 0;
  for (const auto& load : loads) {
    double sum[2] = {0, 0}, count[2] = {0, 0};
    for (size_t s = 0; s < by_step.size(); ++s)
      if (scene.counts[s] && !std::isnan(load[s]))
        sum[course.level[s] > middle] += load[s], ++count[course.level[s] > middle];
    if (!(count[0] > 0) || !(count[1] > 0)) continue;
    const double least =
        course.kind == CourseKind::kTrend ? (course.high / course.low - 1) / 4 : (course.high / course.low - 1) / 2;
    ++known_ones;
    rose += sum[1] / count[1] >= (1 + least) * sum[0] / count[0];
  }
  if (known_ones == 0 || static_cast<double>(rose) < kNearlyAll * static_cast<double>(known_ones)) return;
  CauseDraft draft;
  draft.cause.kind = CauseKind::kAllSlow;
  draft.cause.ratio = course.high / course.low;
  draft.cause.steps = static_cast<int64_t>(by_step.size());
  draft.cause.course = course;
  draft.cause.certain = true;
  draft.without = [&scene, course](uint32_t op, double& dur, double&) {
    if (scene.times.worker_of(op) != CellTimes::kNone) dur *= course.low / course.level[step_of(scene.graph, op)];
  };
  out.push_back(std::move(draft));
}

}  // namespace stageline
