// Finds the best plans of all layouts.
#include "base/parallel.h"
#include "plan/lower_bound.h"
#include "plan/search_space.h"

namespace stageline::plan {
namespace {

// One layout with a schedule, kept small: there are millions.
struct Point {
  double key = 0;
  uint32_t layout = 0;
  int32_t micro_batches = 1;
  int16_t schedule = 0, chunks = 1;
};

constexpr double kMaxStepNs = 4e17;  // 12 years; sums of a step fit into 64 bits
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kMaxMisses = 500;     // layouts that do not fit and are compared for the nearest
constexpr int64_t kMakingReplays = 4;  // what making an order and looking through its memory takes, in replays
constexpr int64_t kMinLook = 100'000;  // least work on one layout

class Finder {
 public:
  explicit Finder(const Wish& wish)
      : w_(wish), defs_(schedules_of(wish)), rest_ns_(wish.recorded ? std::llround(wish.recorded_rest_ns) : 0) {}

  Result<Found> run() {
    for_each_layout(w_, [&](const Layout& l) { add_points(l); });
    if (points_.empty() && found_.rejected == 0) return no_layout();
    found_.layouts = static_cast<int64_t>(points_.size()) + found_.rejected;
    // Layouts are sorted by their degrees.
    sort_stably(points_, {}, [](const Point& p) { return std::tuple(p.key, p.layout, p.schedule, p.chunks); });
    search();
    refine();
    if (found_.plans.empty()) explain_shortfall();
    if (w_.pareto && !found_.plans.empty()) add_front();
    return std::move(found_);
  }

 private:
  Result<Found> no_layout() const {
    if (too_long_)
      return make_error(ErrorCode::kUsage, "a step would take years: the model is too large, or a number is wrong");
    return make_error(ErrorCode::kUsage, "no layout of " + std::to_string(w_.gpus) + " devices has these degrees",
                      "degrees divide heads, KV heads, FFN width, sequence and devices; the global batch is a multiple "
                      "of dp × micro-batch size");
  }

  // A point of `count` whose schedule is known by its place in defs_.
  void add_points(const Layout& l) {
    const std::vector<int32_t> counts = micro_batch_counts(w_, l);
    if (counts.empty()) return;
    const LayoutSums sums = sums_of(w_, l);
    const double limit = w_.rates.memory.limit;
    // The mean rank's states alone, divided as far as they can be.
    const bool too_large = limit > 0 && sums.states / l.pp + w_.rates.memory.reserve > limit;
    if (too_large) {
      too_large_.emplace_back(sums.states / l.pp, l);
      std::ranges::push_heap(too_large_, {}, &std::pair<double, Layout>::first);
      if (too_large_.size() > kMaxMisses) {
        std::ranges::pop_heap(too_large_, {}, &std::pair<double, Layout>::first);
        too_large_.pop_back();
      }
    } else {
      layouts_.push_back(l);
    }
    for (const int32_t m : counts)
      for (size_t d = 0; d < defs_.size(); ++d) {
        const std::string_view name = defs_[d]->name;
        if (l.pp == 1 && name != "1f1b") continue;
        if (name == "dualpipe-v-mindspeed" && w_.model.layers() % (int64_t{2} * l.pp) != 0) continue;
        // It overlaps exchanges between experts and nothing else.
        if (name == "vpp-ep-overlap" && l.ep == 1 && w_.schedules.empty()) continue;
        for (const int32_t v : chunk_counts(w_, *defs_[d], l.pp)) {
          if (sums.work * m + sums.latency * 4 * (double{1} * l.pp * v + m) > kMaxStepNs) {
            too_long_ = true;
            continue;
          }
          if (too_large) {
            ++found_.rejected;
            continue;
          }
          const double overlap = w_.recorded ? w_.recorded->overlap : 0;
          const double key = key_of(sums, *defs_[d], l.pp, m, overlap) + static_cast<double>(rest_ns_);
          points_.push_back(
              {key, static_cast<uint32_t>(layouts_.size() - 1), m, static_cast<int16_t>(d), static_cast<int16_t>(v)});
        }
      }
  }

  int64_t last_wanted_ns() const { return found_.plans.size() < w_.top ? INT64_MAX : found_.plans[w_.top - 1].step_ns; }

  struct Tried {
    std::optional<Candidate> candidate, misses;
    int64_t work = 2'000, bound_ns = INT64_MAX;  // the bound of what did not become a candidate
    bool left_out = false;                       // the work is not enough for it
  };

  int64_t cells_of(const Point& point) const {
    return int64_t{2} * point.chunks * layouts_[point.layout].pp * point.micro_batches;
  }

  // MindSpeed's DualPipeV takes no list of layers.
  bool any_split(const Point& point) const {
    return w_.framework->any_split && std::string_view(defs_[point.schedule]->name) != "dualpipe-v-mindspeed";
  }

  // Searches a point for at most `work`. With `limit`, for a smaller memory than the wish's.
  Tried attempt(const Point& point, int64_t work, int64_t give_up_ns, double limit = 0) const {
    Tried out;
    const Layout& layout = layouts_[point.layout];
    const int64_t making = kMakingReplays * cells_of(point) + 3 * w_.model.layers();
    out.left_out = making > work && w_.split.empty();
    if (out.left_out) return out;
    auto problem = problem_of(w_, layout, defs_[point.schedule]->name, point.chunks, point.micro_batches);
    if (!problem) return out;
    if (limit > 0) problem->limit = limit;
    out.work += making;
    if (!w_.split.empty()) {
      attempt_split(point, *problem, out);
      return out;
    }
    if (!any_split(point)) {
      auto even = price_split(*problem, even_layers(problem->kind_of.size(), problem->stages()));
      if (even && *even) out.candidate = priced(w_, *problem, layout, **even, (*even)->span_ns);
      if (even && !*even) out.misses = with_most_recompute(w_, *problem, layout);
      return out;
    }
    const SplitAnswer answer =
        best_split(*problem, {work - making, give_up_ns < INT64_MAX ? give_up_ns - rest_ns_ : INT64_MAX});
    out.work += answer.work;
    if (answer.fits) out.bound_ns = answer.bound_ns + rest_ns_;
    if (answer.best) out.candidate = priced(w_, *problem, layout, *answer.best, answer.bound_ns);
    if (!answer.fits) out.misses = with_most_recompute(w_, *problem, layout);
    return out;
  }

  void attempt_split(const Point& point, const PlanProblem& problem, Tried& out) const {
    Plan plan = plan_of(w_.split);
    if (std::ssize(w_.split) != problem.stages() || plan.bounds.back() != problem.kind_of.size()) return;
    if (w_.split_recompute.empty()) {
      auto priced_plan = price_split(problem, w_.split);
      if (!priced_plan || !*priced_plan) {
        out.misses = with_most_recompute(w_, problem, layouts_[point.layout]);
        return;
      }
      plan = **priced_plan;
    } else {
      plan.recompute = w_.split_recompute;
    }
    Candidate c = priced(w_, problem, layouts_[point.layout], std::move(plan), 0);
    c.bound_ns = LowerBound(problem).ns(stage_times(problem, LayerSums(problem), c.plan)) + c.step_ns - c.plan.span_ns;
    const bool too_large = problem.limit > 0 && c.needed_bytes > problem.limit;
    (too_large ? out.misses : out.candidate) = std::move(c);
  }

  void take(Tried& tried, const Point& point) {
    if (tried.candidate) {
      const auto at = std::upper_bound(
          found_.plans.begin(), found_.plans.end(), *tried.candidate, [](const Candidate& a, const Candidate& b) {
            return std::tuple(a.step_ns, a.peak_bytes) < std::tuple(b.step_ns, b.peak_bytes);
          });
      points_of_.insert(points_of_.begin() + (at - found_.plans.begin()), point);
      found_.plans.insert(at, std::move(*tried.candidate));
      const size_t keep = std::max<size_t>(w_.top, 10);
      for (; found_.plans.size() > keep; found_.plans.pop_back(), points_of_.pop_back())
        others_bound_ns_ = std::min(others_bound_ns_, found_.plans.back().bound_ns);
    } else {
      others_bound_ns_ = std::min(others_bound_ns_, tried.bound_ns);
    }
    if (tried.misses && tried.misses->needed_bytes > w_.rates.memory.limit &&
        (!misses_ || tried.misses->needed_bytes < misses_->needed_bytes))
      misses_ = std::move(tried.misses);
  }

  // Two thirds of the work find the plans, the rest improves those that are shown.
  void search() {
    constexpr size_t kBatch = 16;
    int64_t left = w_.work * 2 / 3;
    size_t next = 0;
    double left_out = kNever;  // the least key of those
    while (next < points_.size() && left > 0) {
      const int64_t give_up = last_wanted_ns();
      if (points_[next].key >= static_cast<double>(give_up)) break;
      const size_t count = std::min(kBatch, points_.size() - next);
      // A first look at a layout takes a few replays of it, so that many get one.
      const auto look = [&](const Point& point) {
        return std::min(left / 4, std::max(kMinLook, 3 * kMakingReplays * cells_of(point)));
      };
      std::vector<Tried> tried(count);
      parallel_for(count, [&](size_t i) {
        if (points_[next + i].key < static_cast<double>(give_up))
          tried[i] = attempt(points_[next + i], look(points_[next + i]), give_up);
      });
      for (size_t i = 0; i < count; ++i) {
        left -= tried[i].work;
        found_.tried += tried[i].left_out ? 0 : 1;
        if (tried[i].left_out) left_out = std::min(left_out, points_[next + i].key);
        take(tried[i], points_[next + i]);
      }
      next += count;
    }
    if (next < points_.size()) left_out = std::min(left_out, points_[next].key);
    left_key_ = left_out;
    found_.complete = left_out >= static_cast<double>(last_wanted_ns());
  }

  // The plans that are shown get more work each, which improves their split or proves it.
  void refine() {
    if (found_.plans.empty()) return;
    std::vector<Candidate> plans = std::move(found_.plans);
    std::vector<Point> points = std::move(points_of_);
    found_.plans.clear(), points_of_.clear();
    const size_t shown = std::min(plans.size(), w_.top);
    std::vector<Tried> again(plans.size());
    parallel_for(shown, [&](size_t i) {
      if (w_.split.empty() && any_split(points[i]))
        again[i] = attempt(points[i], w_.work / (w_.pareto ? 6 : 3) / static_cast<int64_t>(shown), INT64_MAX);
    });
    for (size_t i = 0; i < plans.size(); ++i) {
      if (!again[i].candidate || again[i].candidate->step_ns > plans[i].step_ns) again[i].candidate = plans[i];
      again[i].misses.reset();
      take(again[i], points[i]);
    }
    int64_t bound = std::min(found_.plans.front().step_ns, others_bound_ns_);
    for (const Candidate& c : found_.plans) bound = std::min(bound, c.bound_ns);
    if (left_key_ < static_cast<double>(bound)) bound = static_cast<int64_t>(left_key_);
    found_.bound_ns = bound;
  }

  // The plans that are shown, and the fastest of their layouts for smaller and smaller limits; of all these, those that
  // are faster than all that need less memory.
  void add_front() {
    const size_t shown = std::min(found_.plans.size(), w_.top), steps = 24 / shown + 1;
    std::vector<std::vector<Candidate>> tighter(shown);
    parallel_for(shown, [&](size_t i) {
      double limit = found_.plans[i].needed_bytes;
      for (size_t n = 0; n < steps; ++n) {
        const Tried next =
            attempt(points_of_[i], w_.work / 6 / static_cast<int64_t>(shown * steps), INT64_MAX, limit * 0.97);
        if (!next.candidate) break;
        limit = next.candidate->needed_bytes;
        tighter[i].push_back(*next.candidate);
      }
    });
    std::vector<Candidate> all = found_.plans;
    for (const auto& list : tighter) all.insert(all.end(), list.begin(), list.end());
    sort_stably(all, {}, [](const Candidate& c) { return std::tuple(c.peak_bytes, c.step_ns); });
    int64_t best = INT64_MAX;
    for (Candidate& c : all)
      if (c.step_ns < best) best = c.step_ns, found_.pareto.push_back(std::move(c));
  }

  // Layouts whose states alone are too large were not tried, but may lack least.
  void explain_shortfall() {
    for (const auto& [states, l] : too_large_) {
      const auto problem = problem_of(w_, l, "1f1b", 1, std::max(1, micro_batch_counts(w_, l).front()));
      if (!problem || problem->stages() > static_cast<int32_t>(problem->kind_of.size())) continue;
      Candidate c = with_most_recompute(w_, *problem, l);
      if (!misses_ || c.needed_bytes < misses_->needed_bytes) misses_ = std::move(c);
    }
    if (misses_) found_.shortfall = shortfall_of(w_, std::move(*misses_));
  }

  const Wish& w_;
  std::vector<const ScheduleDef*> defs_;
  std::vector<Layout> layouts_;
  std::vector<Point> points_, points_of_;
  Found found_;
  std::optional<Candidate> misses_;
  std::vector<std::pair<double, Layout>> too_large_;  // by the mean states of a rank
  bool too_long_ = false;
  double left_key_ = kNever;
  int64_t rest_ns_, others_bound_ns_ = INT64_MAX;
};

}  // namespace

Result<Found> find_plans(const Wish& w) {
  Finder finder(w);
  TRY(found, finder.run());
  if (found->plans.empty()) return found;
  if (w.pareto) add_sensitivity(w, *found);
  if (found->plans.size() > w.top) found->plans.resize(w.top);
  add_errors(w, *found);
  return found;
}

}  // namespace stageline::plan
