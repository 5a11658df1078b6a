#include "plan/split.h"

#include <algorithm>
#include <random>

#include "base/json_tree.h"
#include "plan/lower_bound.h"
#include "schedules/registry.h"
#include "unit/plan/planner_data.h"

using namespace stageline;
using namespace stageline::plan;

namespace {

Schedule make(const char* name, int p, int m, int v) {
  ScheduleSizes sizes;
  sizes.stages = p, sizes.micro_batches = m, sizes.chunks = v;
  auto made = make_schedule(name, sizes);
  REQUIRE(made);
  return *made;
}

// A pipeline without units: every layer is a kind of its own.
struct Case {
  int p = 2, m = 4, least = 1;
  std::vector<int64_t> F, B, act, keep, state;
  int64_t embF = 0, embB = 0, embS = 0, headF = 0, headB = 0, headS = 0, headT = 0, latency = 0, limit = 0;

  PlanProblem problem(const char* schedule = "1f1b", int v = 1) const {
    PlanProblem out;
    out.schedule = make(schedule, p, m, v);
    out.held = held_moments(out.schedule);
    std::vector<uint8_t> kind_of(F.size());
    for (size_t i = 0; i < F.size(); ++i) {
      kind_of[i] = static_cast<uint8_t>(i);
      LayerBytes b;
      b.act = act[i], b.input = keep[i], b.states.parameters = state[i];
      out.bytes.kinds.push_back(b);
      out.times.kinds.push_back({.forward = F[i], .input = B[i] / 2, .weight = B[i] - B[i] / 2});
    }
    out.kind_of = kind_of;
    out.bytes.embedding.parameters = embS, out.bytes.head.parameters = headS, out.bytes.head_transient = headT;
    out.times.embedding = {.forward = embF, .input = embB, .weight = 0};
    out.times.head = {.forward = headF, .input = headB / 2, .weight = headB - headB / 2};
    out.times.latency = latency;
    out.limit = limit, out.memory.limit = limit, out.memory.reserve = 0, out.memory.fragmentation = 1;
    out.min_layers = least;
    return out;
  }
};

Case random_case(std::mt19937& rng, int stages_per_rank) {
  const auto in = [&](int a, int b) { return a + static_cast<int>(rng() % (b - a + 1)); };
  Case c;
  c.p = in(2, stages_per_rank > 1 ? 6 / stages_per_rank : 4);
  c.m = stages_per_rank > 1 ? c.p * in(2, 3) : in(1, 8);
  if (stages_per_rank > 1) c.m = std::max(c.m, 2 * c.p);
  const int layers = in(c.p * stages_per_rank, std::min(9, c.p * stages_per_rank + 4));
  const bool even = in(0, 1);
  for (int i = 0; i < layers; ++i) {
    c.F.push_back(even ? 1000 : in(800, 1400));
    c.B.push_back(2 * c.F.back());
    c.act.push_back(even ? 100 : in(80, 140)), c.keep.push_back(8), c.state.push_back(300);
  }
  c.embF = 50, c.embB = 60, c.embS = 400, c.headF = in(300, 2500), c.headB = 2 * c.headF, c.headS = 400, c.headT = 150;
  c.latency = in(0, 2) * 40;
  c.limit = in(0, 3) ? in(700, 2200) : 0;
  return c;
}

// Every split and every number of recomputed layers of every virtual stage.
std::pair<int64_t, std::vector<Plan>> exhaustive(const PlanProblem& p) {
  int64_t best = INT64_MAX;
  std::vector<Plan> plans;
  const LayerSums sums(p);
  const auto layers = static_cast<int32_t>(p.kind_of.size());
  Plan plan;
  plan.bounds = {0};
  const std::function<void()> recompute = [&] {
    const auto s = plan.recompute.size();
    if (static_cast<int32_t>(s) == p.stages()) {
      if (p.all_or_none) {
        bool some = false, all = true;
        for (size_t k = 0; k < s; ++k)
          some |= plan.recompute[k].full > 0, all &= plan.recompute[k].full == plan.bounds[k + 1] - plan.bounds[k];
        if (some && !all) return;
      }
      for (int32_t r = 0; r < p.ranks(); ++r)
        if (!fits(p, peak_of(p, r, plan))) return;
      const auto times = stage_times(p, sums, plan);
      const auto span = span_of(p, times);
      REQUIRE(span);
      CHECK(LowerBound(p).ns(times) <= *span);
      if (*span < best) best = *span, plans.clear();
      if (*span == best) plans.push_back(plan);
      return;
    }
    for (int32_t n = 0; n <= plan.bounds[s + 1] - plan.bounds[s]; ++n) {
      plan.recompute.push_back({0, n});
      recompute();
      plan.recompute.pop_back();
    }
  };
  const std::function<void()> cut = [&] {
    const auto s = static_cast<int32_t>(plan.bounds.size()) - 1;
    if (s == p.stages()) {
      recompute();
      return;
    }
    const int32_t from = plan.bounds.back() + p.min_layers;
    const int32_t to = s + 1 == p.stages() ? layers : layers - (p.stages() - 1 - s) * p.min_layers;
    for (int32_t hi = s + 1 == p.stages() ? layers : from; hi <= to; ++hi) {
      if (hi - plan.bounds.back() < p.min_layers) break;
      plan.bounds.push_back(hi);
      cut();
      plan.bounds.pop_back();
    }
  };
  cut();
  return {best, plans};
}

std::vector<int64_t> numbers(const Value& list) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < list.size(); ++i) out.push_back(list.item(i).integer().value_or(0));
  return out;
}

}  // namespace

TEST_CASE("plan: the optimum of small cases, and all plans that reach it") {
  if (shared_data("planner/search_small.json").empty()) return;
  const auto tree = parse_json_tree(planner_data::text_of("search_small.json"), "search_small.json");
  REQUIRE(tree);
  const Value cases = tree->tree.root()["cases"];
  REQUIRE(cases.size() > 0);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Value from = cases.item(i);
    CAPTURE(from["name"].text());
    const auto number = [&](const char* a, const char* b = nullptr) {
      return (b ? from[a][b] : from[a]).integer().value_or(0);
    };
    Case c;
    c.p = static_cast<int>(number("stages")), c.m = static_cast<int>(number("micro_batches"));
    c.least = static_cast<int>(number("least"));
    c.F = numbers(from["F"]), c.B = numbers(from["B"]), c.act = numbers(from["act"]), c.keep = numbers(from["keep"]);
    c.state = numbers(from["state"]), c.limit = number("limit"), c.latency = number("latency");
    c.embF = number("emb", "F"), c.embB = number("emb", "B"), c.embS = number("emb", "state");
    c.headF = number("head", "F"), c.headB = number("head", "B"), c.headS = number("head", "state");
    c.headT = number("head", "transient");
    const PlanProblem problem = c.problem();
    const SplitAnswer answer = best_split(problem);
    const Value wanted = from["answer"]["span"];
    CHECK(answer.best.has_value() == !wanted.is_none());
    if (!answer.best) continue;
    CHECK(answer.best->span_ns == wanted.integer());
    CHECK(answer.bound_ns == answer.best->span_ns);
    const auto [best, plans] = exhaustive(problem);
    CHECK(best == answer.best->span_ns);
    REQUIRE(plans.size() == from["answer"]["plans"].size());
    for (size_t k = 0; k < plans.size(); ++k) {
      const Value one = from["answer"]["plans"].item(k);
      std::vector<int64_t> layers, again;
      for (const int32_t n : plans[k].layers()) layers.push_back(n);
      for (const Recompute& r : plans[k].recompute) again.push_back(r.full);
      CHECK(layers == numbers(one.item(0)));
      CHECK(again == numbers(one.item(1)));
    }
  }
}

TEST_CASE("plan: 2 000 random pipelines against every split") {
  std::mt19937 rng(7);
  int feasible = 0;
  for (int i = 0; i < 2000; ++i) {
    Case c = random_case(rng, 1);
    CAPTURE(i);
    const PlanProblem problem = c.problem();
    const auto [best, plans] = exhaustive(problem);
    const SplitAnswer answer = best_split(problem);
    CHECK(answer.best.has_value() == !plans.empty());
    if (plans.empty()) continue;
    ++feasible;
    CHECK(answer.best->span_ns == best);
    CHECK(answer.bound_ns == best);
  }
  CHECK(feasible > 800);
}

TEST_CASE("plan: several chunks a rank against every split and every recompute") {
  std::mt19937 rng(11);
  int same = 0, feasible = 0;
  const char* names[] = {"vpp", "zb-v", "dualpipe-v"};
  for (int i = 0; i < 500; ++i) {
    const Case c = random_case(rng, 2);
    CAPTURE(i);
    const PlanProblem problem = c.problem(names[i % 3], 2);
    const auto [best, plans] = exhaustive(problem);
    const SplitAnswer answer = best_split(problem);
    CHECK(answer.best.has_value() == !plans.empty());
    if (plans.empty() || !answer.best) continue;
    ++feasible;
    CHECK(answer.bound_ns <= best);
    CHECK(answer.best->span_ns >= best);
    same += answer.best->span_ns == best;
  }
  MESSAGE("equal in ", same, " of ", feasible);
  CHECK(same >= 0.98 * feasible);
  CHECK(feasible > 150);
}

TEST_CASE("plan: all layers again or none, against every split") {
  std::mt19937 rng(21);
  int same = 0, feasible = 0, again = 0, tight = 0;
  for (int i = 0; i < 600; ++i) {
    const int chunks = 1 + i % 2;
    const Case c = random_case(rng, chunks);
    CAPTURE(i);
    PlanProblem problem = c.problem(chunks == 1 ? "1f1b" : "vpp", chunks);
    problem.per_rank = false, problem.all_or_none = true;
    const auto [best, plans] = exhaustive(problem);
    const SplitAnswer answer = best_split(problem);
    CHECK(answer.best.has_value() == !plans.empty());
    if (plans.empty() || !answer.best) continue;
    ++feasible;
    CHECK(answer.bound_ns <= best);
    same += answer.best->span_ns == best;
    const bool computes = answer.best->recompute.front().full > 0;
    again += computes, tight += computes && answer.bound_ns * 10 > best * 9;
  }
  MESSAGE("equal in ", same, " of ", feasible, "; ", again, " compute again, of which ", tight, " within a tenth");
  CHECK(same >= 0.98 * feasible);
  CHECK(again > 30);
}

TEST_CASE("plan: no bound is above the replay") {
  std::mt19937 rng(3);
  const std::pair<const char*, int> names[] = {
      {"1f1b", 1}, {"fthenb", 1}, {"eager-1f1b", 1}, {"zb-h1", 1},    {"zb-h2", 1},
      {"vpp", 2},  {"zb-v", 2},   {"dualpipe-v", 2}, {"dualpipe", 2}, {"interleaved-zb", 2}};
  for (int n = 0; n < 400; ++n) {
    const auto& [name, v] = names[n % std::size(names)];
    const int p = 2 * (1 + static_cast<int>(rng() % 3)), m = 2 * p * (1 + static_cast<int>(rng() % 3));
    Case c;
    c.p = p, c.m = m;
    c.F = {1}, c.B = {2}, c.act = {1}, c.keep = {1}, c.state = {1};
    c.latency = static_cast<int64_t>(rng() % 50);
    const PlanProblem problem = c.problem(name, v);
    for (int k = 0; k < 250; ++k) {
      std::vector<LayerTime> times;
      for (int32_t s = 0; s < problem.stages(); ++s) {
        LayerTime t;
        t.forward = 1 + static_cast<int64_t>(rng() % 100), t.input = 1 + static_cast<int64_t>(rng() % 100);
        t.weight = static_cast<int64_t>(rng() % 100);
        times.push_back(t);
      }
      const auto span = span_of(problem, times);
      REQUIRE(span);
      const int64_t bound = LowerBound(problem).ns(times);
      if (bound > *span) CHECK_MESSAGE(bound <= *span, name);
    }
  }
}

TEST_CASE("plan: properties of random pipelines") {
  std::mt19937 rng(5);
  int fitting = 0;
  for (int i = 0; i < 300; ++i) {
    Case c = random_case(rng, 1);
    CAPTURE(i);
    const PlanProblem problem = c.problem();
    const SplitAnswer answer = best_split(problem);
    Case wide = c;
    wide.limit = c.limit > 0 ? c.limit * 3 / 2 : 0;
    const SplitAnswer more = best_split(wide.problem());
    PlanProblem bare = problem;
    bare.full = false;
    const SplitAnswer none = best_split(bare);
    CHECK((!none.best || (answer.best && answer.best->span_ns <= none.best->span_ns)));
    if (!answer.best) continue;
    ++fitting;
    REQUIRE(more.best);
    CHECK(more.best->span_ns <= answer.best->span_ns);
    // The plan fits into the memory that it needs.
    double needs = 0;
    for (int32_t r = 0; r < problem.ranks(); ++r)
      needs = std::max(needs, needed(peak_of(problem, r, *answer.best), problem.bar, problem.memory));
    PlanProblem tight = problem;
    tight.limit = needs;
    const SplitAnswer same = best_split(tight);
    REQUIRE(same.best);
    CHECK(same.best->span_ns == answer.best->span_ns);
    // Twice the micro-batches are at least twice the mean work.
    Case twice = c;
    twice.m = 2 * c.m;
    int64_t work = c.embF + c.embB + c.headF + c.headB;
    for (size_t k = 0; k < c.F.size(); ++k) work += c.F[k] + c.B[k];
    if (const SplitAnswer longer = best_split(twice.problem()); longer.best)
      CHECK(longer.best->span_ns >= 2 * c.m * work / c.p);
    // Layers that are alike may change places.
    for (size_t k = 0; k + 1 < c.F.size(); ++k)
      if (c.F[k] == c.F[k + 1] && c.act[k] == c.act[k + 1]) {
        PlanProblem swapped = problem;
        std::vector<uint8_t> kinds(problem.kind_of.begin(), problem.kind_of.end());
        std::swap(kinds[k], kinds[k + 1]);
        swapped.kind_of = kinds;
        const SplitAnswer again = best_split(swapped);
        REQUIRE(again.best);
        CHECK(again.best->span_ns == answer.best->span_ns);
      }
  }
  CHECK(fitting > 100);
}

TEST_CASE("plan: work is counted, and a little is enough for an answer with an honest bound") {
  std::mt19937 rng(9);
  for (int i = 0; i < 100; ++i) {
    const Case c = random_case(rng, i % 2 ? 2 : 1);
    const PlanProblem problem = c.problem(i % 2 ? "zb-v" : "1f1b", i % 2 ? 2 : 1);
    const SplitAnswer whole = best_split(problem);
    const SplitAnswer little = best_split(problem, {.work = whole.work / 3});
    if (!little.best) continue;
    CHECK(little.bound_ns <= whole.best->span_ns);
    CHECK(little.best->span_ns >= whole.best->span_ns);
  }
}
