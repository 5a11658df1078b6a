#include "plan/search.h"

#include "base/parallel.h"
#include "schedules/registry.h"

namespace stageline::plan {
namespace {

// One layout with a schedule, kept small: there are millions.
struct Point {
  double key = 0;
  uint32_t layout = 0;
  int32_t micro_batches = 1;
  int16_t schedule = 0, chunks = 1;
};

bool allows(const std::vector<int32_t>& list, int32_t value) { return list.empty() || std::ranges::count(list, value); }
bool divides(int32_t part, double whole) { return std::fmod(whole, part) == 0; }

std::vector<int32_t> degrees(const std::vector<int32_t>& wanted, int32_t max, bool powers) {
  std::vector<int32_t> out;
  if (!wanted.empty()) return wanted;
  for (int32_t n = 1; n <= max; powers ? n *= 2 : ++n) out.push_back(n);
  return out;
}

std::vector<const ScheduleDef*> schedules_of(const Wish& w) {
  std::vector<const ScheduleDef*> out;
  for (const ScheduleDef* def : schedules()) {
    const bool wanted = w.schedules.empty() || std::ranges::count(w.schedules, def->name);
    const auto& own = w.framework->schedules;
    const bool offered = !w.schedules.empty() || own.empty() || std::ranges::count(own, std::string_view(def->name));
    if (wanted && offered) out.push_back(def);
  }
  return out;
}

// All layouts that the model, the devices and the wish allow. `visit` is called for each.
template <class Visit> void for_each_layout(const Wish& w, Visit&& visit) {
  const Model& m = w.model;
  const bool moe = m.moe.has_value();
  for (const int32_t tp : degrees(w.tp, w.per_node, false)) {
    if (w.tp.empty() && !divides(tp, w.per_node)) continue;
    if (!divides(tp, m.heads) || !divides(tp, m.kv_heads) || !divides(tp, m.ffn)) continue;
    for (const int32_t cp : degrees(w.cp, std::min(64, w.gpus), true)) {
      if (cp > 1 && !divides(2 * cp, w.sequence)) continue;
      if (!divides(tp * cp, w.sequence)) continue;
      for (const int32_t pp : degrees(w.pp, std::min<int32_t>(w.gpus, static_cast<int32_t>(m.layers()) + 2), false)) {
        const int64_t used = int64_t{1} * tp * cp * pp;
        if (used > w.gpus || w.gpus % used != 0) continue;
        const auto dp = static_cast<int32_t>(w.gpus / used);
        if (!allows(w.dp, dp)) continue;
        for (const int32_t ep :
             moe ? degrees(w.ep, std::min<int32_t>(tp * cp * dp, static_cast<int32_t>(m.moe->count)), true)
                 : std::vector<int32_t>{1}) {
          if (moe && !divides(ep, m.moe->count)) continue;
          for (const int32_t etp : moe && !w.etp.empty() ? w.etp : std::vector<int32_t>{1}) {
            if ((int64_t{1} * tp * cp * dp) % (int64_t{1} * ep * etp) != 0) continue;
            for (const int32_t mbs : w.micro_batch.empty() ? std::vector<int32_t>{1, 2, 4, 8} : w.micro_batch) {
              Layout l{tp, cp, ep, etp, pp, dp, mbs, w.sequence};
              visit(l);
            }
          }
        }
      }
    }
  }
}

// The numbers of micro-batches that a layout may have.
std::vector<int32_t> micro_batch_counts(const Wish& w, const Layout& l) {
  if (w.global_batch <= 0)
    return w.micro_batches.empty() ? std::vector<int32_t>{std::max(1, 4 * l.pp)} : w.micro_batches;
  const int64_t each = int64_t{1} * l.dp * l.micro_batch;
  if (w.global_batch % each != 0 || w.global_batch / each > 65'536) return {};
  const auto m = static_cast<int32_t>(w.global_batch / each);
  return allows(w.micro_batches, m) ? std::vector<int32_t>{m} : std::vector<int32_t>{};
}

std::vector<int32_t> chunk_counts(const Wish& w, const ScheduleDef& def, int32_t pp) {
  std::vector<int32_t> out;
  const bool fixed = def.default_chunks == def.max_chunks;
  for (int32_t v = fixed ? def.default_chunks : 2;
       v <= (fixed ? def.default_chunks : (w.chunks.empty() ? std::min(def.max_chunks, 12) : def.max_chunks)); ++v)
    if (allows(w.chunks, v) && (v == 1 || pp > 1) &&
        int64_t{1} * v * pp <= w.model.layers() + (w.framework->empty_stages ? 2 : 0))
      out.push_back(v);
  return out;
}

// Times and states of a layout whatever its schedule.
struct LayoutSums {
  double latency = 0, work = 0, comm = 0, way = 0, states = 0, back_share = 1;
};

LayoutSums sums_of(const Wish& w, const Layout& l) {
  const Times times = w.recorded ? *w.recorded : estimated_times(w.model, l, w.rates);
  const LayoutBytes bytes = layout_bytes(w.model, l, w.rates.memory);
  LayoutSums s{.latency = static_cast<double>(times.latency)};
  const auto all = [](const LayerTime& t) { return static_cast<double>(t.sum()); };
  s.work = all(times.embedding) + all(times.head);
  s.way = s.work - static_cast<double>(times.head.weight + times.embedding.weight);
  s.states = bytes.embedding.sum() + bytes.head.sum();
  for (const uint8_t kind : w.model.kind_of) {
    const LayerTime& t = times.kinds[kind];
    s.work += all(t);
    s.way += static_cast<double>(t.forward + t.input);
    s.comm += static_cast<double>(t.forward_comm + t.input_comm);
    s.states += bytes.kinds[kind].states.sum();
    if (all(t) > 0) s.back_share = std::min(s.back_share, static_cast<double>(t.input + t.weight) / all(t));
  }
  return s;
}

// No plan of the layout is faster: the mean work of a rank, one micro-batch's way, and for 1F1B both together.
double key_of(const LayoutSums& s, const ScheduleDef& def, int32_t pp, int32_t m, double overlap) {
  const std::string_view name = def.name;
  const bool overlapped = name.starts_with("dualpipe") || name == "vpp-ep-overlap";
  const double share = overlapped && overlap > 0 ? std::min(1.0, overlap) : 1;
  double key = std::max(m * (s.work - (overlapped ? s.comm : 0)) / pp * share, overlapped ? 0 : s.way);
  if (name == "1f1b") {
    const double slowest = s.work / pp;
    key = std::max(key,
                   s.work + slowest * ((m - 1) * s.back_share + std::max(0, m - pp) * (1 - s.back_share)) * 0.999999);
  }
  return key;
}

std::vector<Modules> selections_of(const Wish& w, bool keeps_experts) {
  std::vector<Modules> out;
  if (w.recompute == RecomputeWish::kNone || w.recompute == RecomputeWish::kFull || w.framework->all_or_none)
    return out;
  constexpr int kNorm = 1, kAct = 2, kUp = 4, kMlp = 8, kCore = 16;  // in the order of Module
  const int none =
      (w.model.moe || w.framework->dense_act ? 0 : kAct) | (w.model.mla ? 0 : kUp) | (keeps_experts ? kMlp : 0);
  const auto add = [&](int more) {
    for (const int set :
         {kNorm, kAct, kNorm | kAct, kUp, kNorm | kUp, kNorm | kUp | kAct, kNorm | kUp | kMlp, kMlp, kNorm | kMlp})
      if ((set & none) == 0) out.push_back(static_cast<Modules>(set | more));
  };
  if (!w.rates.memory.flash) out.push_back(kCore);
  add(0);
  if (!w.rates.memory.flash) add(kCore);
  return out;
}

// Finds by how much the fullest rank misses its limit with everything computed again.
Candidate with_most_recompute(const Wish& w, const PlanProblem& p, const Layout& l) {
  Plan plan = plan_of(std::ssize(w.split) == p.stages() ? w.split : even_layers(p.kind_of.size(), p.stages()));
  for (int32_t s = 0; s < p.stages() && p.full; ++s) plan.recompute[s].full = plan.bounds[s + 1] - plan.bounds[s];
  return priced(w, p, l, std::move(plan), 0);
}

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

  void explain_shortfall() {
    Shortfall out;
    // Layouts whose states alone are too large were not tried, but may lack least.
    for (const auto& [states, l] : too_large_) {
      const auto problem = problem_of(w_, l, "1f1b", 1, std::max(1, micro_batch_counts(w_, l).front()));
      if (!problem || problem->stages() > static_cast<int32_t>(problem->kind_of.size())) continue;
      Candidate c = with_most_recompute(w_, *problem, l);
      if (!misses_ || c.needed_bytes < misses_->needed_bytes) misses_ = std::move(c);
    }
    if (!misses_) return;
    out.candidate = *misses_;
    out.rank = out.candidate.peak_rank;
    out.excess_bytes = out.candidate.needed_bytes - w_.rates.memory.limit;
    // Single changes, each evaluated.
    const Layout base = out.candidate.layout;
    const auto attempt_change = [&](const std::string& change, const Layout& l, const MemoryOptions& memory) {
      Wish other = w_;
      other.rates.memory = memory;
      const auto problem =
          problem_of(other, l, out.candidate.schedule, out.candidate.chunks, out.candidate.micro_batches);
      if (!problem || problem->stages() > static_cast<int32_t>(problem->kind_of.size())) return;
      const Candidate c = with_most_recompute(other, *problem, l);
      const int64_t devices = int64_t{1} * l.tp * l.pp * l.cp * l.dp;
      const std::string on = devices == w_.gpus ? "" : " on " + grouped(devices) + " devices";
      if (c.needed_bytes <= memory.limit) out.fixes.push_back({change + on, c.needed_bytes});
    };
    const MemoryOptions& memory = w_.rates.memory;
    const std::pair<const char*, int32_t Layout::*> degrees[] = {
        {"tp", &Layout::tp}, {"pp", &Layout::pp}, {"cp", &Layout::cp}, {"dp", &Layout::dp}};
    for (const auto& [name, degree] : degrees)
      for (const int32_t factor : {2, 4}) {
        Layout l = base;
        l.*degree *= factor;
        const bool divided =
            divides(l.tp, w_.model.heads) && divides(l.tp, w_.model.kv_heads) && divides(l.tp, w_.model.ffn);
        if (divided && (l.cp == 1 || divides(2 * l.cp, w_.sequence)))
          attempt_change(name + (" " + std::to_string(l.*degree)), l, memory);
      }
    if (base.micro_batch > 1) {
      Layout l = base;
      l.micro_batch = base.micro_batch / 2;
      attempt_change("micro-batch size " + std::to_string(l.micro_batch), l, memory);
    }
    for (const auto& [name, sharding] :
         {std::pair("--optimizer zero2", Sharding::kZero2), std::pair("--optimizer zero3", Sharding::kZero3)})
      if (memory.sharding < sharding) {
        MemoryOptions other = memory;
        other.sharding = sharding;
        attempt_change(name, base, other);
      }
    std::stable_sort(out.fixes.begin(), out.fixes.end(),
                     [](const auto& a, const auto& b) { return a.needed < b.needed; });
    found_.shortfall = std::move(out);
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

Result<PlanProblem> problem_of(const Wish& w, const Layout& l, const std::string& schedule, int32_t chunks, int32_t m) {
  ScheduleSizes sizes;
  sizes.stages = l.pp, sizes.micro_batches = m, sizes.chunks = chunks;
  TRY(made, make_schedule(schedule, sizes));
  PlanProblem p = problem_of(std::move(*made), w.model, l, w.rates.memory);
  p.times = w.recorded ? *w.recorded : estimated_times(w.model, l, w.rates);
  // Both directions of a bidirectional pipeline would pass an empty stage, and the other would do all the work.
  p.min_layers = w.framework->empty_stages && p.schedule.layout != ChunkLayout::kBidirectional ? 0 : 1;
  const bool keeps_experts = schedule == "vpp-ep-overlap";  // Megatron refuses to compute these or layers again
  p.full = !keeps_experts && (w.recompute == RecomputeWish::kFull || w.recompute == RecomputeWish::kAuto);
  p.per_rank = w.per_rank.value_or(w.framework->per_rank);
  p.all_or_none = w.framework->all_or_none;
  p.selections = selections_of(w, keeps_experts);
  if (std::ssize(w.other_bytes) == p.ranks()) p.other_bytes = w.other_bytes;
  return p;
}

int64_t step_of(const Wish& w, const PlanProblem& p, const Layout& l, const Plan& plan,
                const std::vector<std::vector<ReplayedCell>>& cells, const RateOptions& rates) {
  if (!w.recorded) return step_ns(p, plan, cells, step_ends(p, plan, l, rates));
  return span_of(cells) + std::llround(w.recorded_rest_ns);
}

Candidate priced(const Wish& w, const PlanProblem& p, const Layout& l, Plan plan, int64_t bound_ns) {
  Candidate c;
  c.layout = l;
  c.schedule = p.schedule.name, c.chunks = p.schedule.sizes.chunks, c.group = p.schedule.sizes.group;
  c.micro_batches = p.schedule.sizes.micro_batches;
  const LayerSums sums(p);
  const std::vector<LayerTime> times = stage_times(p, sums, plan);
  if (const auto cells = cells_of(p, times)) {
    int64_t busy = 0;
    for (const auto& rank : *cells)
      for (const ReplayedCell& cell : rank) busy += cell.end_ns - cell.start_ns;
    plan.span_ns = span_of(*cells);
    c.step_ns = step_of(w, p, l, plan, *cells, w.rates);
    if (plan.span_ns > 0) c.bubble = 1 - static_cast<double>(busy) / p.ranks() / static_cast<double>(plan.span_ns);
  }
  c.bound_ns = bound_ns > 0 ? std::min(c.step_ns, bound_ns + c.step_ns - plan.span_ns) : 0;
  c.error_ns = (w.recorded ? w.recorded_error : w.calibrated ? 0.08 : 0.2) * static_cast<double>(c.step_ns);
  const double tokens = w.sequence * l.micro_batch * c.micro_batches * l.dp;
  const double peak_flops = w.rates.fp8 ? w.rates.hardware.fp8_flops : w.rates.hardware.bf16_flops;
  c.mfu = kNaN;
  if (c.step_ns > 0 && peak_flops > 0 && w.model.sized())
    c.mfu = total_flops(w.model, w.sequence) * tokens / (static_cast<double>(c.step_ns) / 1e9) /
            (peak_flops * l.tp * l.cp * l.pp * l.dp);
  if (c.mfu > 1) c.mfu = kNaN;  // the recorded times are not those of this hardware
  c.plan = std::move(plan);
  for (int32_t r = 0; r < p.ranks(); ++r) {
    c.peaks.push_back(peak_of(p, r, c.plan));
    const double need = needed(c.peaks.back(), p.bar, p.memory);
    if (r == 0 || need > c.needed_bytes) c.needed_bytes = need, c.peak_rank = r, c.peak_bytes = c.peaks.back().sum();
  }
  return c;
}

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
