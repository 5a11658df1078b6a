#include "plan/split.h"

#include "plan/lower_bound.h"
#include "plan/recompute.h"

namespace stageline::plan {
namespace {

int64_t cell_count(const Schedule& schedule) {
  int64_t count = 0;
  for (const RankOrder& order : schedule.ranks) count += static_cast<int64_t>(order.size());
  return std::max<int64_t>(1, count);
}

// Searches one pipeline. Keeps the best plan and counts replayed cells.
class Search {
 public:
  Search(const PlanProblem& problem, const Budget& budget)
      : p_(problem), sums_(problem), bound_(problem), layers_(static_cast<int32_t>(problem.kind_of.size())),
        stages_(problem.stages()), replay_cells_(cell_count(problem.schedule)), left_(budget.work),
        limit_ns_(budget.give_up_ns) {
    // Finding what a rank computes again looks at its memory some dozen times.
    if (p_.limit <= 0) return;
    const size_t moments = sum_over<size_t>(p_.held, [](const RankHeld& held) { return held.size() + 3; });
    fit_work_ = static_cast<int64_t>((p_.selections.size() + 12) * moments * p_.schedule.sizes.chunks / 16);
  }

  SplitAnswer run(const Budget& budget) {
    if (layers_ < stages_ * p_.min_layers) return answer_;
    if (p_.per_rank) run_with({});
    else run_one_choice();
    answer_.work = budget.work - left_;
    return answer_;
  }

 private:
  bool spent() const { return left_ < replay_cells_; }
  int64_t best_ns() const { return answer_.best ? std::min(limit_ns_, answer_.best->span_ns) : limit_ns_; }

  // One choice of what is computed again for all stages: each is a search of its own, those that cost least first.
  void run_one_choice() {
    std::vector<Recompute> choices = {{}};
    for (const Modules modules : p_.selections) choices.push_back({modules, 0});
    const int32_t widest = layers_ - (stages_ - 1) * p_.min_layers;
    for (int32_t n = p_.all_or_none ? widest : 1; p_.full && n <= widest; ++n) choices.push_back({0, n});
    try_starts();
    int64_t bound = INT64_MAX;
    for (const Recompute& choice : choices) {
      const int64_t floor = floor_ns(choice);
      if (choice.full > 0 && floor >= best_ns()) break;
      answer_.bound_ns = floor;
      if (!spent()) run_with(choice);
      bound = std::min(bound, answer_.bound_ns);
      if (spent() && choice.full > 0) break;
    }
    answer_.bound_ns = std::min(bound, best_ns());
  }

  // No split is faster when every virtual stage recomputes this much: the mean work of a rank, and one micro-batch's
  // way through the model. The fewest layers are computed again where one virtual stage has all that are free.
  int64_t floor_ns(const Recompute& choice) const {
    LayerTime all = sums_.before.back();
    int64_t again = min_over<int64_t>(p_.times.kinds, &LayerTime::forward);
    const int32_t widest = layers_ - (stages_ - 1) * p_.min_layers;
    all.input += again * (std::min(widest, choice.full) + (stages_ - 1) * std::min(p_.min_layers, choice.full));
    const int64_t ends = p_.times.embedding.sum() + p_.times.head.sum();
    bool overlapped = false;
    for (const RankOrder& order : p_.schedule.ranks)
      for (const ScheduleCell& cell : order) overlapped |= cell.overlapped();
    const double share = overlapped && p_.times.overlap > 0 ? std::min(1.0, p_.times.overlap) : 1;
    const int64_t busy = all.sum() + ends - (overlapped ? all.forward_comm + all.input_comm : 0);
    const int64_t way = all.forward + all.input + p_.times.head.sum() - p_.times.head.weight;
    return std::max(std::llround(p_.schedule.sizes.micro_batches * (static_cast<double>(busy) * share) / p_.ranks()),
                    overlapped ? 0LL : static_cast<long long>(way));
  }

  void run_with(const std::optional<Recompute>& fixed) {
    fixed_ = fixed;
    seen_.clear();
    if (p_.schedule.sizes.chunks == 1) search_one_chunk();
    else search_chunks();
  }

  // ---- one chunk a rank
  struct Stage {
    int64_t bound = 0;
    Recompute recompute;
    bool fits = false;
  };

  Stage stage(int32_t k, int32_t lo, int32_t hi) {
    left_ -= 8 + fit_work_ / stages_;
    ChunkPart part{k, lo, hi, {}};
    Stage out;
    if (fixed_) {
      part.recompute = {fixed_->modules, std::min(fixed_->full, hi - lo)};
      out.fits = p_.limit <= 0 || fits(p_, peak_of(p_, k, {&part, 1}));
    } else {
      out.fits = recompute_rank(p_, sums_, k, {&part, 1});
    }
    if (!out.fits) return out;
    out.recompute = part.recompute;
    const LowerBound::Rank& rank = bound_.ranks()[k];
    LayerTime own = sums_.stage(p_, k, lo, hi);
    own.input += again_ns(sums_, lo, out.recompute, hi);
    const int64_t f = own.forward, i = own.input, w = own.weight;
    const LayerTime earlier = sums_.before[lo], later = sums_.before.back() - sums_.before[hi];
    const LayerTime &first = p_.times.embedding, &last = p_.times.head;
    const auto back = [&](const LayerTime& t) { return t.input + (splits_ ? 0 : t.weight); };
    const int64_t before = earlier.forward + (k > 0 ? first.forward : 0) + hops_down_[k];
    const int64_t after = back(earlier) + (k > 0 ? back(first) : 0) + hops_back_[k];
    const bool end = k + 1 == stages_;
    const int64_t down = later.forward + back(later) + (end ? 0 : last.forward + back(last)) + hops_down_.back() -
                         hops_down_[k] + hops_back_.back() - hops_back_[k];
    const int64_t m = p_.schedule.sizes.micro_batches;
    const int64_t whole = before + std::max(rank.warm * f, f + down) + m * (i + w) + (m - rank.warm) * f;
    out.bound = std::max(whole, whole - rank.trailing * w + after);
    return out;
  }

  struct Step {
    int32_t hi = 0;
    Stage stage;
  };

  void search_one_chunk() {
    splits_ = splits_backward(p_.schedule);
    hops_down_.assign(stages_, 0), hops_back_.assign(stages_, 0);
    for (int32_t k = 1; k < stages_; ++k) {
      const bool own = !p_.times.there.empty();
      hops_down_[k] = hops_down_[k - 1] + (own ? p_.times.there[k - 1] : p_.times.latency);
      hops_back_[k] = hops_back_[k - 1] + (own ? p_.times.back[k - 1] : p_.times.latency);
    }
    try_starts();
    // steps_[k][lo]: where stage k may end if it begins at lo, with its bound; ends_[k][lo]: the least bound from
    // there. A stage with more layers than `widest` alone takes longer than the best plan.
    const int32_t least = p_.min_layers;
    int64_t cheapest = min_over<int64_t>(
        p_.times.kinds, [&](const LayerTime& kind) { return kind.sum() * p_.schedule.sizes.micro_batches; });
    const int64_t widest = std::min<int64_t>(layers_, best_ns() / std::max<int64_t>(1, cheapest) + 1);
    steps_.assign(stages_, {});
    first_.clear();
    for (int32_t k = 0; k <= stages_; ++k)
      first_.push_back(static_cast<int32_t>(std::max<int64_t>(k * least, layers_ - (stages_ - k) * widest)));
    const auto last_of = [&](int32_t k) {
      return static_cast<int32_t>(std::min<int64_t>(layers_ - (stages_ - k) * least, k * widest));
    };
    whole_ = int64_t{8} * stages_ * layers_ < left_;  // filling the table is work, too
    ends_.assign(whole_ ? stages_ + 1 : 1, std::vector<int64_t>(layers_ + 1, INT64_MAX));
    ends_.back()[layers_] = 0;
    for (int32_t k = stages_ - 1; k >= 0 && whole_; --k) {
      steps_[k].resize(std::max(0, last_of(k) - first_[k] + 1));
      for (int32_t lo = first_[k]; lo <= last_of(k) && whole_; ++lo) {
        left_ -= (last_of(k + 1) - lo) / 16;
        for (int32_t hi = std::max(lo + least, first_[k + 1]); hi <= last_of(k + 1); ++hi) {
          if (ends_[k + 1][hi] == INT64_MAX) continue;
          whole_ &= !spent();
          const Stage s = stage(k, lo, hi);
          if (!s.fits) {
            if (hi > lo + least + 1 || !whole_)
              break;  // more layers need more memory, but for the first that are recomputed
            continue;
          }
          if (s.bound > best_ns() && hi > lo) break;
          steps_[k][lo - first_[k]].push_back({hi, s});
          ends_[k][lo] = std::min(ends_[k][lo], std::max(s.bound, ends_[k + 1][hi]));
        }
      }
      for (auto& ways : steps_[k])
        std::stable_sort(ways.begin(), ways.end(), [&](const Step& a, const Step& b) {
          return std::max(a.stage.bound, ends_[k + 1][a.hi]) < std::max(b.stage.bound, ends_[k + 1][b.hi]);
        });
    }
    // Where the work did not last for the table, only the mean work of a rank is a bound.
    const int64_t floor = floor_ns(fixed_.value_or(Recompute{}));
    const int64_t bound = whole_ ? std::max(floor, ends_[0][0]) : floor;
    answer_.fits |= (whole_ && ends_[0][0] < INT64_MAX) || answer_.best.has_value();
    Plan plan;
    plan.bounds.assign(1, 0);
    if (whole_ && bound < INT64_MAX) descend(0, plan);
    climb();
    answer_.bound_ns = whole_ ? best_ns() : std::min(bound, best_ns());
  }

  void descend(int32_t k, Plan& plan) {
    if (k == stages_) {
      if (spent()) {
        whole_ = false;
        return;
      }
      replay_plan(plan);
      return;
    }
    for (const Step& step : steps_[k][plan.bounds.back() - first_[k]]) {
      if (std::max(step.stage.bound, ends_[k + 1][step.hi]) >= best_ns()) return;
      if (++nodes_ > kMaxNodes || spent()) {
        whole_ = false;
        return;
      }
      plan.bounds.push_back(step.hi);
      plan.recompute.push_back(step.stage.recompute);
      descend(k + 1, plan);
      plan.bounds.pop_back();
      plan.recompute.pop_back();
    }
  }

  // Boundaries at equal shares of the whole time of a micro-batch.
  std::vector<int32_t> equal_time_bounds() const {
    const auto cost = [&](int32_t hi) { return sums_.before[hi].sum(); };
    const int64_t all = cost(layers_) + p_.times.embedding.sum() + p_.times.head.sum();
    std::vector<int32_t> bounds = {0};
    for (int32_t s = 1; s < stages_; ++s) {
      const int64_t wanted = all / stages_ * s - p_.times.embedding.sum();
      int32_t hi = bounds.back() + p_.min_layers;
      while (hi < layers_ - (stages_ - s) * p_.min_layers && cost(hi) + cost(hi + 1) <= 2 * wanted) ++hi;
      bounds.push_back(std::min(hi, layers_ - (stages_ - s) * p_.min_layers));
    }
    bounds.push_back(layers_);
    return bounds;
  }

  // ---- several chunks a rank
  void search_chunks() {
    if (small()) {
      std::vector<int32_t> bounds = {0};
      enumerate(bounds);
    } else {
      try_starts();
      climb();
    }
    answer_.bound_ns = std::min(floor_ns(fixed_.value_or(Recompute{})), best_ns());
  }

  void try_starts() {
    try_bounds(plan_of(even_layers(layers_, stages_)).bounds);
    if (p_.schedule.sizes.chunks > 1) try_bounds(even_ranks_bounds());
    try_bounds(equal_time_bounds());
  }

  bool small() const {
    const int32_t free = layers_ - stages_ * p_.min_layers;
    double combinations = 1;
    for (int32_t s = 1; s < stages_; ++s) combinations = combinations * (free + s) / s;
    return combinations <= 3000 && replay_cells_ <= 4000;
  }

  void enumerate(std::vector<int32_t>& bounds) {
    const auto stage = static_cast<int32_t>(bounds.size()) - 1;
    if (stage + 1 == stages_) {
      bounds.push_back(layers_);
      try_bounds(bounds, true);
      bounds.pop_back();
      return;
    }
    for (int32_t hi = bounds.back() + p_.min_layers; hi <= layers_ - (stages_ - 1 - stage) * p_.min_layers; ++hi) {
      bounds.push_back(hi);
      enumerate(bounds);
      bounds.pop_back();
    }
  }

  // Every rank gets the same number of layers, less what embedding and head take of its time.
  std::vector<int32_t> even_ranks_bounds() const {
    std::vector<double> load(p_.ranks(), 0);
    std::vector<int32_t> owner(stages_, 0), count(stages_, p_.min_layers);
    for (int32_t r = 0; r < p_.ranks(); ++r)
      for (int32_t c = 0; c < p_.schedule.sizes.chunks; ++c) owner[virtual_stage(p_.schedule, r, c)] = r;
    const double layer = static_cast<double>(sums_.before.back().sum()) / layers_;
    for (int32_t s = 0; s < stages_; ++s) load[owner[s]] += layer * count[s];
    load[owner[0]] += static_cast<double>(p_.times.embedding.sum());
    load[owner[stages_ - 1]] += static_cast<double>(p_.times.head.sum());
    for (int32_t left = layers_ - stages_ * p_.min_layers; left > 0; --left) {
      int32_t best = 0;
      for (int32_t s = 1; s < stages_; ++s) {
        const double a = load[owner[s]], b = load[owner[best]];
        if (a < b || (a == b && count[s] < count[best])) best = s;
      }
      ++count[best];
      load[owner[best]] += layer;
    }
    std::vector<int32_t> bounds = {0};
    for (const int32_t n : count) bounds.push_back(bounds.back() + n);
    return bounds;
  }

  // ---- both
  void try_bounds(const std::vector<int32_t>& bounds, bool thorough = false) {
    for (int32_t s = 0; s < stages_; ++s)
      if (bounds[s + 1] - bounds[s] < p_.min_layers) return;
    const auto* bytes = reinterpret_cast<const char*>(bounds.data());
    if (!seen_.insert(std::hash<std::string_view>{}({bytes, bounds.size() * sizeof(int32_t)})).second) return;
    left_ -= 4 * stages_ + fit_work_;
    Plan plan;
    plan.bounds = bounds;
    if (fixed_) {
      plan.recompute.assign(stages_, {});
      for (int32_t s = 0; s < stages_; ++s)
        plan.recompute[s] = {fixed_->modules, std::min(fixed_->full, bounds[s + 1] - bounds[s])};
      for (int32_t r = 0; r < p_.ranks(); ++r)
        if (p_.limit > 0 && !fits(p_, peak_of(p_, r, plan))) return;
    } else if (!recompute_all(p_, sums_, plan)) {
      return;
    }
    answer_.fits = true;
    if (!spent()) replay_plan(plan);
    if (thorough && !fixed_ && p_.full) vary_recompute(plan);
  }

  // Tries other ways to divide what a rank computes again among its chunks, one rank after another.
  void vary_recompute(Plan plan) {
    for (int32_t r = 0; r < p_.ranks(); ++r) {
      std::vector<int32_t> stages;
      int64_t ways = 1;
      for (int32_t c = 0; c < p_.schedule.sizes.chunks; ++c) {
        const int32_t s = virtual_stage(p_.schedule, r, c);
        stages.push_back(s);
        ways *= plan.bounds[s + 1] - plan.bounds[s] + 1;
      }
      bool any = false;
      for (const int32_t s : stages) any |= !(plan.recompute[s] == Recompute{});
      if (!any || ways > 64) continue;
      Plan trial = plan, best = plan;
      int64_t best_span = INT64_MAX;
      for (int64_t way = 0; way < ways && !spent(); ++way) {
        int64_t rest = way;
        for (const int32_t s : stages) {
          const int32_t size = plan.bounds[s + 1] - plan.bounds[s] + 1;
          trial.recompute[s] = {0, static_cast<int32_t>(rest % size)};
          rest /= size;
        }
        left_ -= fit_work_ / p_.ranks();
        if (!fits(p_, peak_of(p_, r, trial))) continue;
        if (const int64_t span = replay_plan(trial); span < best_span) best_span = span, best = trial;
      }
      plan = best;
    }
  }

  // Moves layers between two virtual stages while that helps: many at first, in the end one at a time.
  void climb() {
    const bool near = p_.schedule.sizes.chunks == 1;
    for (int32_t step = std::max(1, layers_ / (8 * stages_)); step > 0 && answer_.best; step /= 2)
      for (bool better = true; better && !spent();) {
        better = false;
        const int64_t before = answer_.best->span_ns;
        const std::vector<int32_t> base = answer_.best->bounds;
        for (int32_t from = 0; from < stages_ && !better && !spent(); ++from)
          for (int32_t to = near ? std::max(0, from - 1) : 0;
               to < (near ? std::min(stages_, from + 2) : stages_) && !better && !spent(); ++to) {
            if (from == to) continue;
            std::vector<int32_t> bounds = base;
            for (int32_t s = std::min(from, to) + 1; s <= std::max(from, to); ++s)
              bounds[s] += from < to ? -step : step;
            try_bounds(bounds);
            better = answer_.best->span_ns < before;
          }
      }
  }

  int64_t replay_plan(Plan plan) {
    const std::vector<LayerTime> times = stage_times(p_, sums_, plan);
    if (bound_.ns(times) >= best_ns()) {
      left_ -= replay_cells_ / 4;
      return INT64_MAX;
    }
    left_ -= replay_cells_;
    if (!replay_) replay_ = RepeatedReplay::of(p_.schedule);
    if (!*replay_) return INT64_MAX;
    const int64_t span = span_of(p_, **replay_, times);
    if (span < best_ns()) plan.span_ns = span, answer_.best = std::move(plan);
    return span;
  }

  static constexpr int64_t kMaxNodes = 200'000;
  const PlanProblem& p_;
  LayerSums sums_;
  LowerBound bound_;
  int32_t layers_, stages_;
  int64_t replay_cells_, fit_work_ = 0, left_, limit_ns_, nodes_ = 0;
  std::optional<Recompute> fixed_;
  std::optional<Result<RepeatedReplay>> replay_;  // made for the first plan
  SplitAnswer answer_;
  std::vector<int64_t> hops_down_, hops_back_;
  bool splits_ = false, whole_ = false;
  std::vector<int32_t> first_;  // for each stage, the first layer that it may begin with
  std::vector<std::vector<std::vector<Step>>> steps_;
  std::vector<std::vector<int64_t>> ends_;
  std::set<size_t> seen_;  // hashes of boundaries
};

}  // namespace

SplitAnswer best_split(const PlanProblem& problem, const Budget& budget) { return Search(problem, budget).run(budget); }

Result<std::optional<Plan>> price_split(const PlanProblem& problem, const std::vector<int32_t>& layers) {
  const LayerSums sums(problem);
  Plan plan = plan_of(layers);
  if (!recompute_all(problem, sums, plan)) return std::optional<Plan>();
  TRY(span, span_of(problem, stage_times(problem, sums, plan)));
  plan.span_ns = *span;
  return std::optional(std::move(plan));
}

}  // namespace stageline::plan
