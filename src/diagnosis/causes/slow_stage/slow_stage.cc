// Slow stage: its compute takes longer than that of the other stages, with all its work, one chunk, or one kind of it.
#include "diagnosis/causes/replica_levels.h"
#include "diagnosis/causes/telling.h"
#include "pipeline/measure/op_values.h"

namespace stageline {
namespace {

struct SlowStageOwn {
  // Kinds of work that take longer: mean time of one cell of it, and of the other stages' cells.
  struct Kind {
    CellKind kind;
    double own_ns, others_ns;
  };
  std::vector<Kind> kinds = {};
  bool one_kind = false;  // only one of several kinds is slow
};

constexpr double kSlowKind = 1.03;      // minimum ratio of one kind of cell of a slow stage at which that kind is named
constexpr double kSlowKindAlone = 1.1;  // minimum ratio of one kind of cell where the stage's whole work is not slow
constexpr double kMinOfStage = 2.0 / 3;  // minimum share of a stage's excess that one chunk must hold to be named
constexpr int64_t kMinSlowSteps = 3;     // it must be slow in at least one of this many steps

// For each place (stage, chunk, kind): its mean, its number of cells, what other places of the kind take, and what all
// would take if evened out.
struct PlaceTimes {
  std::vector<double> mean, count, others, even;
};

// Whether a cell takes part in the comparison of stages. Where replicas differ, a stage that was not read of one of
// them would differ from the others by that replica.
bool is_compared(const CauseScene& scene, uint32_t op) {
  if (scene.times.worker_of(op) == CellTimes::kNone) return false;
  return scene.coverage.whole_replica(scene.graph.dp(op)) || !scene.coverage.any_whole_replica();
}

int32_t stage_at(const CauseScene& scene, size_t place) {
  return static_cast<int32_t>(place / CellTimes::kKinds / scene.times.chunks());
}

// Where two of three stages are slow, one of them is half of what the other is compared with. So stages that are known
// to be slow are compared with those that are not.
PlaceTimes place_times(const CauseScene& scene, const std::set<int32_t>& slow = {}) {
  PlaceTimes t;
  t.mean = scene.times.place_means();
  t.count.resize(t.mean.size());
  t.others = t.even = std::vector<double>(t.mean.size(), std::nan(""));
  const OpBlocks blocks(counted_ops(scene.graph, scene.counts), t.count.size());
  std::vector<double> of_block(blocks.size() * t.count.size()), total(t.mean.size());
  blocks.each([&](size_t b, uint32_t op) {
    if (is_compared(scene, op)) ++of_block[b * t.count.size() + scene.times.place_of(op)];
  });
  for (size_t i = 0; i < of_block.size(); ++i) t.count[i % t.count.size()] += of_block[i];
  if (!scene.coverage.whole() && scene.coverage.any_whole_replica()) {
    scene.each_op([&](uint32_t op, size_t) {
      if (is_compared(scene, op)) total[scene.times.place_of(op)] += scene.times.time_ns(op);
    });
    for (size_t p = 0; p < total.size(); ++p) t.mean[p] = t.count[p] > 0 ? total[p] / t.count[p] : kNaN;
  }
  // A place is compared with those of all chunks, since only one stage has the first chunk and only one the last.
  for (size_t kind = 0; kind < CellTimes::kKinds; ++kind) {
    std::vector<std::pair<double, size_t>> all;
    for (size_t p = kind; p < t.mean.size(); p += CellTimes::kKinds)
      if (!std::isnan(t.mean[p])) all.emplace_back(t.mean[p], p);
    if (all.size() < 2) continue;
    std::ranges::sort(all);
    std::vector<double> sorted, beside;
    double sum = 0, n = 0;
    for (const auto& [mean, p] : all) {
      sorted.push_back(mean), sum += mean * t.count[p], n += t.count[p];
      if (!slow.contains(stage_at(scene, p))) beside.push_back(mean);
    }
    for (size_t i = 0; i < all.size(); ++i) {
      const bool is_slow = slow.contains(stage_at(scene, all[i].second)) && !beside.empty();
      t.others[all[i].second] = is_slow ? median_of(beside) : median_of_others(sorted, i);
      t.even[all[i].second] = sum / n;
    }
  }
  return t;
}

// For each step of the graph, what the cells of each stage and chunk take, and what those of other stages take on
// average.
class StageSteps {
 public:
  StageSteps(const CauseScene& scene, const std::vector<double>& others)
      : stages_(scene.times.stages()), chunks_(scene.times.chunks()), steps_(scene.graph.steps.size()),
        counts_(scene.counts), times_(stages_ * static_cast<size_t>(chunks_) * steps_) {
    for (size_t step = 0; step < steps_; ++step)
      for (uint32_t op = scene.graph.steps[step].begin; op < scene.graph.steps[step].end; ++op) {
        if (!is_compared(scene, op) || scene.times.left_out(op)) continue;
        const double other = others[scene.times.place_of(op)];
        if (std::isnan(other)) continue;
        Times& times = times_[at(scene.graph.stage(op), scene.graph.chunk[op], step)];
        times.own += scene.times.time_ns(op);
        times.theirs += other;
      }
    for (int32_t stage = 0; stage < stages_; ++stage) levels_.push_back(levels(stage));
    sorted_levels_.resize(steps_);
    for (const std::vector<double>& own : levels_)
      for (size_t step = 0; step < steps_; ++step)
        if (own[step] > 0) sorted_levels_[step].push_back(own[step]);
    for (std::vector<double>& sorted : sorted_levels_) std::ranges::sort(sorted);
  }

  // Returns for each step the time of the stage, or of one chunk of it, relative to cells of other stages in that step.
  // Steps that do not count have NaN, unless `all` is set. A change of all stages in a step is divided out.
  std::vector<double> ratios(int32_t stage, int32_t chunk, bool all = false) const {
    std::vector<double> ratios(steps_, std::nan(""));
    for (size_t step = 0; step < steps_; ++step) {
      if (!all && !counts_[step]) continue;
      const Times times = of(stage, chunk, step);
      if (times.theirs > 0) ratios[step] = times.own / times.theirs / level_beside(stage, step);
    }
    return ratios;
  }

 private:
  struct Times {
    double own = 0, theirs = 0;
  };

  // Cells with an unknown chunk count as the first one's, as in CellTimes::place(); so do all where chunks are too many
  // to be distinguished.
  size_t at(int32_t stage, int32_t chunk, size_t step) const {
    const size_t row = stage * chunks_ + (chunks_ == 1 ? 0 : std::max(chunk, 0));
    return row * steps_ + step;
  }

  // The lower median of the other stages' levels in a step; 1 where there is none. O(log stages).
  double level_beside(int32_t stage, size_t step) const {
    const std::vector<double>& sorted = sorted_levels_[step];
    const double own = levels_[stage][step];
    const bool counts = own > 0;
    const size_t others = sorted.size() - (counts ? 1 : 0);
    if (others == 0) return 1;
    const size_t middle = (others - 1) / 2;
    const auto before =
        counts ? static_cast<size_t>(std::ranges::lower_bound(sorted, own) - sorted.begin()) : sorted.size();
    return sorted[middle < before ? middle : middle + 1];
  }

  // Sums over all chunks of the stage where `chunk` is kUnknown.
  Times of(int32_t stage, int32_t chunk, size_t step) const {
    if (chunk != kUnknown) return times_[at(stage, chunk, step)];
    Times sum;
    for (int32_t c = 0; c < chunks_; ++c) {
      sum.own += times_[at(stage, c, step)].own;
      sum.theirs += times_[at(stage, c, step)].theirs;
    }
    return sum;
  }

  // For each step, how much longer than usual the stage takes, relative to the lower quartile of its steps.
  std::vector<double> levels(int32_t stage) const {
    std::vector<double> level(steps_, std::nan("")), known;
    for (size_t step = 0; step < steps_; ++step)
      if (const Times times = of(stage, kUnknown, step); times.theirs > 0)
        known.push_back(level[step] = times.own / times.theirs);
    if (known.empty()) return level;
    const auto quarter = known.begin() + known.size() / 4;
    std::nth_element(known.begin(), quarter, known.end());
    for (double& value : level) value /= *quarter;
    return level;
  }

  int32_t stages_, chunks_;
  size_t steps_;
  const std::vector<bool>& counts_;
  std::vector<Times> times_;                        // by stage, chunk and step
  std::vector<std::vector<double>> levels_;         // by stage, then step
  std::vector<std::vector<double>> sorted_levels_;  // by step: those above 0
};

// Knows how much single cells scatter on each stage. The scatter is computed when it is first needed.
class StageScatter {
 public:
  explicit StageScatter(const CauseScene& scene) : scene_(scene) {}

  const CellTimes::Scatter& of(int32_t stage) const { return all()[stage]; }
  // Returns the scatter of the other stage whose cells scatter most widely.
  CellTimes::Scatter others(int32_t stage) const {
    CellTimes::Scatter worst;
    for (int32_t other = 0; other < scene_.times.stages(); ++other)
      if (other != stage && of(other).error > worst.error) worst = of(other);
    return worst;
  }
  // The standard deviation of the stage's ratio to the others in one step, as far as it comes from single cells.
  double of_step(int32_t stage) const {
    const double error = std::hypot(of(stage).error, others(stage).error);
    return error * std::sqrt(static_cast<double>(std::ranges::count(scene_.counts, true)));
  }

 private:
  const std::vector<CellTimes::Scatter>& all() const {
    if (all_.empty())
      all_ = scene_.times.scatter(scene_.times.stages(),
                                  [&](uint32_t op) { return static_cast<uint32_t>(scene_.graph.stage(op)); });
    return all_;
  }

  const CauseScene& scene_;
  mutable std::vector<CellTimes::Scatter> all_;
};

// The course of a stage that is slow in a part of the steps only, to a degree that differs from step to step, as a
// device that gets hot and cools down; without one, no course. `ratios` has NaN for steps that do not count, which
// `all` has.
Course slow_at_times(const std::vector<double>& ratios, const std::vector<double>& all, const StageScatter& cells,
                     int32_t stage) {
  std::vector<double> low, high;
  for (const double ratio : known_ratios(ratios)) (ratio < kSlowCause ? low : high).push_back(ratio);
  constexpr size_t kMinEach = 3;
  constexpr double kScatters = 5;  // minimum excess of slow steps, to the scatter of the others
  if (std::min(low.size(), high.size()) < kMinEach || 4 * low.size() < low.size() + high.size()) return {};
  Course course{.kind = CourseKind::kSome, .high_count = high.size(), .low = mean_of(low), .high = mean_of(high)};
  course.noise = sample_std(low);
  course.level = all;
  if (!slow_course(course) || course.high - course.low < kScatters * course.noise) return {};
  // Few steps are alike by chance; their cells are many.
  course.noise = std::max(course.noise, cells.of_step(stage));
  return course.high - course.low < kScatters * course.noise ? Course{} : course;
}

bool is_overlapped(size_t kind) { return kind == static_cast<size_t>(CellKind::kForwardBackward); }

// Returns whether some cells of the stage's chunk are not half of an overlapped pair.
bool stands_alone(const CauseScene& scene, const PlaceTimes& t, int32_t stage, int32_t chunk) {
  for (size_t kind = 0; kind < CellTimes::kKinds; ++kind)
    if (!is_overlapped(kind) && !std::isnan(t.others[scene.times.place(stage, chunk, static_cast<CellKind>(kind))]))
      return true;
  return false;
}

using Kinds = std::map<size_t, std::array<double, 3>>;  // by kind of cell: own time, others' time, number of cells

// The time of a stage's cells beyond those of the others.
struct StageExcess {
  double own_ns = 0, theirs_ns = 0;
  Kinds kinds;
  int32_t slow_chunks = 0, slowest = kUnknown;  // slowest: the chunk of the greatest excess
  double slowest_ratio = 0, slowest_beyond_ns = 0;
  Kinds of_slowest;

  double beyond_ns() const { return own_ns - theirs_ns; }
  // One chunk may be heavy (embedding, head) in a stage that as a whole is not.
  bool is_whole() const { return theirs_ns > 0 && own_ns >= kSlowCause * theirs_ns; }
  bool is_one_kind() const {
    return !is_whole() && slow_chunks == 0 && own_ns > theirs_ns &&
           std::ranges::any_of(kinds, [](const auto& k) { return k.second[0] >= kSlowKindAlone * k.second[1]; });
  }
};

StageExcess excess_of(const CauseScene& scene, const PlaceTimes& t, int32_t stage) {
  StageExcess out;
  for (int32_t chunk = 0; chunk < scene.times.chunks(); ++chunk) {
    double of_chunk = 0, of_others = 0;
    Kinds in_chunk;
    // An overlapped pair belongs to two chunks. Only single cells can show which of the two is heavy.
    const bool alone = stands_alone(scene, t, stage, chunk);
    for (size_t kind = 0; kind < CellTimes::kKinds; ++kind) {
      const size_t p = scene.times.place(stage, chunk, static_cast<CellKind>(kind));
      if (std::isnan(t.mean[p]) || std::isnan(t.others[p])) continue;
      const double own = t.mean[p] * t.count[p], theirs = t.others[p] * t.count[p];
      out.own_ns += own, out.theirs_ns += theirs;
      auto& [a, b, n] = out.kinds[kind];
      a += own, b += theirs, n += t.count[p];
      if (alone && is_overlapped(kind)) continue;
      of_chunk += own, of_others += theirs;
      in_chunk[kind] = {own, theirs, t.count[p]};
    }
    if (of_chunk < kSlowCause * of_others || !(of_others > 0)) continue;
    ++out.slow_chunks;
    if (of_chunk - of_others <= out.slowest_beyond_ns) continue;
    out.slowest = chunk;
    out.slowest_beyond_ns = of_chunk - of_others;
    out.slowest_ratio = of_chunk / of_others;
    out.of_slowest = std::move(in_chunk);
  }
  return out;
}

// Returns the stage's course over the steps. Levels that differ little compared with the excess have no shape: the
// stage is about as slow in all steps.
Course course_of_stage(const StageSteps& steps, const std::vector<double>& by_step, const StageScatter& cells,
                       const Place& place) {
  Course course = course_of(by_step);
  if (slow_course(course) && !holds_excess(course, by_step)) course = {};
  const auto [low, high] = std::minmax(course.low, course.high);
  if (high - low < kNextToNothing * (high - 1)) course = {};
  const std::vector<double> all = steps.ratios(place.stage, place.chunk, true);
  see_all_steps(course, by_step, all);
  return course.varies() ? course : slow_at_times(by_step, all, cells, place.stage);
}

// The rank that alone was read of a stage that other replicas have too; kUnknown if there are several or no replicas.
int32_t only_rank(const Trace& trace, int32_t replicas, int32_t stage) {
  int32_t rank = kUnknown;
  for (const Part& part : trace.parts) {
    if (part.stage != stage) continue;
    if (rank != kUnknown || replicas <= 1) return kUnknown;
    rank = part.rank;
  }
  return rank;
}

// Returns true when one rank alone makes the stage slow in its few slow steps: it is a slow rank then, and not a slow
// stage. `by_step` has the stage's ratios; each rank is compared with what it takes in the other steps.
bool is_one_rank(const CauseScene& scene, int32_t stage, const std::vector<double>& by_step) {
  const std::vector<std::vector<double>> loads = scene.times.worker_loads();
  size_t ranks = 0, slow = 0;
  for (size_t w = 0; w < loads.size(); ++w) {
    if (scene.times.workers()[w].stage != stage) continue;
    std::vector<double> in_slow, in_others;
    for (size_t s = 0; s < by_step.size(); ++s)
      if (!std::isnan(loads[w][s]) && !std::isnan(by_step[s]))
        (by_step[s] >= kSlowCause ? in_slow : in_others).push_back(loads[w][s]);
    if (in_slow.empty() || in_others.empty()) continue;
    ++ranks, slow += mean_of(in_slow) >= kSlowCause * mean_of(in_others);
  }
  return ranks > 1 && slow == 1;
}

// Describes the stage as a cause, and its excess over the others in `beyond_ns`; returns false where it is not slow.
bool is_slow(const CauseScene& scene, const PlaceTimes& t, const StageSteps& steps, const StageScatter& cells,
             int32_t stage, Cause& cause, double& beyond_ns) {
  const StageExcess excess = excess_of(scene, t, stage);
  const bool one_kind = excess.is_one_kind();
  // It is not slow on average, but may be in some steps.
  cause.sometimes = !excess.is_whole() && excess.slow_chunks == 0 &&
                    !(one_kind && certainly_slow(known_ratios(steps.ratios(stage, kUnknown))));
  Place place{.kind = PlaceKind::kStage, .stage = stage};
  if (cause.sometimes &&
      (!(excess.theirs_ns > 0) || !slow_course(course_of_stage(steps, steps.ratios(stage, kUnknown), cells, place))))
    return false;
  if (const int32_t rank = only_rank(scene.trace, scene.graph.dp_count, stage); rank != kUnknown) place.ranks = {rank};
  SlowStageOwn slow;
  cause.figures.stage = stage;
  cause.figures.ratio = excess.own_ns / excess.theirs_ns;
  beyond_ns = excess.beyond_ns();
  // Embedding and head belong to one chunk. The stage's other chunks may be a little slow and are not named.
  const bool one_chunk = scene.times.chunks() > 1 && excess.slowest != kUnknown &&
                         (excess.slow_chunks == 1 || excess.slowest_beyond_ns >= kMinOfStage * beyond_ns);
  if (one_chunk) place.chunk = excess.slowest, cause.figures.ratio = excess.slowest_ratio;
  const Kinds& kinds = one_chunk ? excess.of_slowest : excess.kinds;
  const std::vector<double> by_step = steps.ratios(stage, place.chunk);
  cause.course = course_of_stage(steps, by_step, cells, place);
  // Where its other steps are like the others' it is slow in some steps only, however much that is on average.
  if (slow_course(cause.course) && std::min(cause.course.low, cause.course.high) < kSlowCause) cause.sometimes = true;
  for (const auto& [kind, sums] : kinds)
    if (!cause.sometimes && sums[0] >= kSlowKind * sums[1])  // means over all steps say nothing of some of them
      slow.kinds.push_back({static_cast<CellKind>(kind), sums[0] / sums[2], sums[1] / sums[2]});
  slow.one_kind = slow.kinds.size() == 1 && kinds.size() > 1;
  const std::vector<double> ratios = known_ratios(by_step);
  if (cause.sometimes && is_one_rank(scene, stage, by_step)) return false;
  cause.in_steps.all = ratios.size();
  double of_slow = 0;
  for (const double ratio : ratios)
    if (ratio >= kSlowCause) of_slow += ratio, ++cause.in_steps.count;
  if (cause.sometimes && cause.in_steps.count > 0) cause.figures.ratio = of_slow / cause.in_steps.count;
  cause.figures.count = cause.in_steps.count, cause.figures.of = cause.in_steps.all;
  if (!cause.sometimes && !cause.course.varies()) cause.price.excess_error = excess_error(ratios);
  cause.places = {place};
  cause.own = std::move(slow);
  cause.certain = certainly_slow(ratios) || slow_course(cause.course);
  if (few_steps(scene) && !cause.certain)
    cause.certain = certainly_slow(mean_of(ratios), cells.of(stage), cells.others(stage));
  if (slow_course(cause.course)) return true;
  // Without a simulation pauses are not left out, so one step does not distinguish a pause from a slow stage.
  if (one_kind || scene.graph.source == GraphSource::kNone) return cause.certain;
  return cause.in_steps.count * kMinSlowSteps >= cause.in_steps.all;
}

struct Slow {
  double beyond_ns = 0;  // its excess over the others
  Cause cause;
};

std::vector<Slow> slow_stages(const CauseScene& scene, const PlaceTimes& t, const StageScatter& cells) {
  const StageSteps steps(scene, t.others);
  std::vector<Slow> slow;
  for (int32_t stage = 0; stage < scene.times.stages(); ++stage)
    if (Slow found; is_slow(scene, t, steps, cells, stage, found.cause, found.beyond_ns))
      slow.push_back(std::move(found));
  return slow;
}

// Where micro-batches enter at both ends, stages s and p − 1 − s hold the same layers, one for each direction. Where
// both are slow, these layers are: if they were lightened on one of the two only, the other would still hold the step
// up.
void join_mirrors(int32_t stages, std::vector<Slow>& slow) {
  for (size_t i = 0; i < slow.size(); ++i)
    for (size_t j = i + 1; j < slow.size(); ++j) {
      std::vector<Place>& places = slow[i].cause.places;
      Place& own = places.front();
      const Place& other = slow[j].cause.place();
      if (other.stage != stages - 1 - own.stage) continue;
      if (own.chunk != kUnknown && own.chunk == other.chunk) continue;  // they are slow in different layers
      if (own.chunk == kUnknown || other.chunk == kUnknown) own.chunk = kUnknown;
      places.push_back({.kind = PlaceKind::kStage, .stage = other.stage, .chunk = own.chunk});
      slow[i].beyond_ns += slow[j].beyond_ns;
      slow.erase(slow.begin() + j);
      break;
    }
}

// Returns whether the stage, or its chunk, holds the end (or, with `end` false, the start) of the model.
bool is_end(const Place& place, const TellContext& context, bool end) {
  const bool known = !context.recognition.candidates.empty();
  const int32_t chunks = known ? context.recognition.best().sizes.chunks : 1, last = context.stages - 1;
  const ChunkLayout layout = known ? context.recognition.best().layout : ChunkLayout::kLoop;
  if (layout == ChunkLayout::kBidirectional) {
    if (place.chunk == kUnknown) return place.stage == 0 || place.stage == last;
    return place.stage == (end == (place.chunk == 0) ? last : 0);
  }
  const int32_t chunk = end ? chunks - 1 : 0;
  if (place.chunk != kUnknown && place.chunk != chunk) return false;
  const bool turned = layout == ChunkLayout::kV && chunk % 2 == 1;
  return place.stage == (end != turned ? last : 0);
}

Text kinds_text(const SlowStageOwn& own, const Text& whose) {
  Text kinds;
  for (const SlowStageOwn::Kind& kind : own.kinds) {
    Args args;
    args.flag("further", !kinds.empty()).set("whose", whose).set("kind", cell_text(kind.kind));
    args.set("own", human_duration(kind.own_ns)).set("others", human_duration(kind.others_ns));
    kinds += words("stage.slow.kind", args);
  }
  return kinds;
}

// Returns the advice: move layers, unless that saves little or nothing.
Text advice_text(const Cause& c, const SlowStageOwn& own, const Text& end, Args& args) {
  const bool end_first = c.price.fix_brings_little() && !end.empty();
  if (c.sometimes) return words("stage.slow.do.sometimes", args);
  if (c.price.unmovable && c.price.movable_ns > 0) return words("stage.slow.do.later", args);
  if (c.price.unmovable) return end.empty() ? words("stage.slow.do.device", args) : end;
  if (own.one_kind)
    return words("stage.slow.do.one", args.set("otherwise", end_first ? end : words("stage.slow.do.away")));
  // Where moving layers helps little because those at the end of the model are heavy, that end comes first.
  return words(end_first ? "stage.slow.do.end" : "stage.slow.do.move", args);
}

// Says how certain it is that the stage is heavy.
Text check_text(const Cause& c, const SlowStageOwn& own, bool alone, Args& args) {
  if (!c.place().ranks.empty())
    return words("stage.slow.check.rank", args.set("rank", int64_t{c.place().ranks.front()}));
  if (c.sometimes) return words("stage.slow.check.sometimes");
  if (own.one_kind) return words("stage.slow.check.one", args);
  return alone ? words("stage.slow.check.alone") : Text();
}

// Lists stages that are about as slow as the slowest, which then is not the only one that is named; empty: there are
// none.
Text stages_alike(std::span<const Cause* const> causes) {
  std::set<int32_t> stages;
  for (const Cause* cause : causes)
    if (cause->figures.ratio - 1 >= kAlikeSlow * (causes.front()->figures.ratio - 1))
      stages.insert(cause->place().stage);
  std::vector<Text> numbers;
  for (const int32_t stage : stages) numbers.push_back({std::to_string(stage), std::to_string(stage)});
  return stages.size() > 1 ? joined(numbers, {", ", "、"}) : Text();
}

}  // namespace

// Compares each stage with the others kind by kind and, where there are chunks, chunk by chunk.
void suspect_slow_stage(CauseScene& scene, std::vector<Suspect>& out) {
  if (scene.times.stages() < 2) return;
  PlaceTimes t = place_times(scene);
  const StageScatter cells(scene);
  std::vector<Slow> slow = slow_stages(scene, t, cells);
  std::set<int32_t> certain;
  for (const Slow& found : slow)
    if (found.cause.certain && !found.cause.sometimes) certain.insert(found.cause.place().stage);
  if (certain.size() > 1) t = place_times(scene, certain), slow = slow_stages(scene, t, cells);
  const auto to_others = std::make_shared<std::vector<double>>(t.mean.size(), 1.0);
  const auto to_even = std::make_shared<std::vector<double>>(t.mean.size(), 1.0);
  for (size_t p = 0; p < t.mean.size(); ++p) {
    if (t.mean[p] > 0 && t.others[p] < t.mean[p]) (*to_others)[p] = t.others[p] / t.mean[p];
    if (t.mean[p] > 0 && t.even[p] > 0) (*to_even)[p] = t.even[p] / t.mean[p];
  }
  if (scene.two_ways) join_mirrors(scene.times.stages(), slow);
  sort_stably(slow, std::greater(), &Slow::beyond_ns);
  if (slow.size() > kMaxWorkerCauses) slow.resize(kMaxWorkerCauses);
  for (const Slow& found : slow) {
    Suspect suspect{.cause = found.cause};
    suspect.cause.kind = &slow_stage_cause;
    suspect.cause.together = {"slow_stage", Together::Role::kEqual};
    const Place& place = found.cause.place();
    const int32_t mirror = found.cause.places.size() > 1 ? found.cause.places[1].stage : kUnknown;
    // A stage that is slow in some steps only becomes faster by the step's level in all its kinds alike; otherwise each
    // kind takes what the others' means say.
    const bool varies = slow_course(found.cause.course) && mirror == kUnknown;
    suspect.without = [&scene, stage = place.stage, chunk = place.chunk, mirror, to_others,
                       course = varies ? found.cause.course : Course{}](uint32_t op, double& dur, double&) {
      const int32_t own = scene.graph.stage(op);
      if (scene.times.worker_of(op) == CellTimes::kNone || (own != stage && own != mirror)) return;
      const double to = (*to_others)[scene.times.place_of(op)];
      if (!course.varies()) {
        dur *= to;
        return;
      }
      if (chunk != kUnknown && scene.graph.chunk[op] != chunk) return;
      const double factor = course_factor(course, step_of(scene.graph, op));
      if (factor > 1) dur /= factor;
    };
    // Evening out is unknown where only a part of the run was read, and moving layers does not help against what is
    // slow in some steps only.
    if (scene.coverage.whole() && !varies)
      suspect.evened = [&scene, to_even](uint32_t op, double& dur, double&) {
        if (scene.times.worker_of(op) != CellTimes::kNone) dur *= (*to_even)[scene.times.place_of(op)];
      };
    out.push_back(std::move(suspect));
  }
}

Telling tell_slow_stage(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  const auto& own = c.own.as<SlowStageOwn>();
  const Place& place = c.place();
  const bool two = c.places.size() > 1;  // the same layers, once for each direction
  Args args = context.args(c);
  const bool last = is_end(place, context, true);
  const Text end = last                            ? words("stage.slow.head")
                   : is_end(place, context, false) ? words("stage.slow.embedding")
                                                   : Text();
  args.flag("two", two).set("end", end).flag("as_fast", c.sometimes || c.price.unmovable);
  if (two) args.set("mirror", int64_t{c.places[1].stage});
  if (own.one_kind) args.set("one", cell_text(own.kinds.front().kind));
  args.set("who", words(last ? "stage.slow.who.last" : "stage.slow.who", args));
  args.set("compared", words("stage.slow.compared", args)).set("do", advice_text(c, own, end, args));
  const Text stages = two ? Text() : stages_alike(causes);
  const Text whose = words(stages.empty() ? "stage.slow.its" : "stage.slow.whose", args);
  const Text kinds = kinds_text(own, whose);
  args.set("whose", whose);
  args.set("takes", kinds.empty() ? words("stage.slow.takes", args) : kinds).set("layers", c.price.fix.words);
  if (c.price.saving_ns > 0) args.set("evens", words("stage.slow.saves.evens", args));
  const char* unmovable = c.price.movable_ns > 0 ? "stage.slow.unmovable.now" : "stage.slow.unmovable";
  args.set("moving", c.price.unmovable ? words(unmovable, args) : Text());
  args.set("check", check_text(c, own, context.replicas <= 1 && !two, args));
  Telling telling = say_cause("stage.slow", "stage.slow", args);
  if (two) telling.title = words("stage.slow.two.title", args);
  if (!stages.empty()) {
    args.flag("two", true).set("list", stages);
    telling.title = words("stage.slow.several.title", args.set("do", advice_text(c, own, {}, args)));
  }
  for (const Cause* further : causes.subspan(1)) telling.more += words("stage.slow.further", context.args(*further));
  if (causes.size() > 1 && c.price.joint_ns > 0)
    telling.more += words("stage.slow.joint", Args().set("joint", context.share(c.price.joint_ns)));
  telling.table = {"waterfall", "waterfall-stages"};
  return telling;
}

}  // namespace stageline
