#include "diagnosis/what_if/what_if.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/parallel.h"
#include "diagnosis/what_if/what_if_fixes.h"
#include "engine/engine.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"
#include "shared_data.h"
#include "unit/facts_of_trace.h"

using namespace stageline;

namespace {

SimulateOptions options_for(const char* name, int32_t stages, int32_t micro_batches, int32_t chunks = 0) {
  const ScheduleDef* def = find_schedule(name);
  REQUIRE(def);
  ScheduleSizes sizes;
  sizes.stages = stages;
  sizes.micro_batches = micro_batches;
  sizes.chunks = chunks > 0 ? chunks : def->default_chunks;
  Result<Schedule> schedule = make_schedule(name, sizes);
  REQUIRE(schedule);
  SimulateOptions o;
  o.schedule = std::move(*schedule);
  return o;
}

Trace linked_run(const SimulateOptions& o) {
  Result<SimulatedRun> run = simulate_run(o);
  REQUIRE(run);
  run->trace.cells.sort();
  link_cells(run->trace);
  return std::move(run->trace);
}

WhatIf model_of(const Trace& trace) {
  Diagnostics notes;
  Result<WhatIf> model = what_if_of(trace, notes);
  REQUIRE(model);
  return std::move(*model);
}

double step_of(const SimulateOptions& o) { return model_of(linked_run(o)).error().recorded_ns; }

// Returns the costs for chunks of half a stage.
UnitCosts halved(UnitCosts c) {
  for (int64_t* ns : {&c.forward_ns, &c.input_ns, &c.weight_ns, &c.backward_ns, &c.overlapped_ns}) *ns /= 2;
  return c;
}

constexpr double kWithin = 0.01;  // of the step: the promise of docs/analyses/what-if.md

}  // namespace

TEST_CASE("what-if: a change of two cells, by hand") {
  // F0 takes 10, F1 10, B1 20, B0 20: 60 ms, one after the other.
  SimulateOptions o = options_for("1f1b", 2, 1);
  o.steps = 1;
  const Trace trace = linked_run(o);
  const WhatIf model = model_of(trace);
  CHECK(model.error().recorded_ns == 60e6);
  CHECK(model.error().graph_ns == doctest::Approx(60e6));
  CHECK(model.error().order_ns == doctest::Approx(60e6));
  Changes half;
  half.scales = {{.stage = 1, .kind = CellKind::kForward, .by = 0.5}};
  const Price price = model.price(half);
  CHECK(price.saving_ns == doctest::Approx(5e6));
  CHECK(price.step_ns == doctest::Approx(55e6));
  CHECK(price.share() == doctest::Approx(5.0 / 60));
  CHECK(std::isnan(price.error_ns));  // a single step gives no error
  Changes set;
  set.scales = {{.rank = 0, .set_ns = 1e6}};  // all of rank 0: F 1, B 1
  CHECK(model.price(set).step_ns == doctest::Approx(32e6));
  Changes slower;
  slower.scales = {{.stage = 0, .by = 2}};
  CHECK(model.price(slower).saving_ns == doctest::Approx(-30e6));
  CHECK_FALSE(model.price(slower).gains());
  // The later scale works on what the earlier one left; another order takes the same cells.
  half.scales.push_back({.stage = 1, .kind = CellKind::kForward, .by = 4});
  CHECK(model.price(half).step_ns == doctest::Approx(70e6));
  half.micro_batches = 2;  // F 10, 20, 20 | B 20 …: two micro-batches take 10 + 20 + 20 + 20 + 20 + 20
  CHECK(model.price(half).step_ns == doctest::Approx(110e6 / 2));
  CHECK(model.touched({.stage = 1, .kind = CellKind::kForward}).all == 1);
  CHECK(model.touched({.stage = 2}).all == 0);
}

TEST_CASE("what-if: without a slow worker the step is the simulated one") {
  for (const char* name : {"1f1b", "vpp", "zb-h1", "zb-v", "dualpipe-v", "fthenb"}) {
    CAPTURE(std::string(name));
    SimulateOptions o = options_for(name, 4, 12);
    o.dp = 3;
    o.costs.latency_ns = 500'000;
    o.optimizer_ns = 5'000'000;
    const double healthy = step_of(o);
    o.faults = {{"slow-rank", 6, 1.5}};  // replica 1, stage 2
    WhatIf model = model_of(linked_run(o));
    CHECK(model.error().recorded_ns > healthy * 1.1);
    CHECK(model.error().graph_ns == doctest::Approx(model.error().recorded_ns).epsilon(kWithin));
    Changes replaced;
    replaced.replaced = {{1, 2}};
    CHECK(model.price(replaced).step_ns == doctest::Approx(healthy).epsilon(kWithin));
    const FixList list = price_fixes(model, {});
    const auto worker =
        std::find_if(list.fixes.begin(), list.fixes.end(), [](const Fix& f) { return f.id == "worker"; });
    REQUIRE(worker != list.fixes.end());
    CHECK(worker->changes.replaced == replaced.replaced);
  }
}

TEST_CASE("what-if: a slow rank of one replica, at the pace of its neighbours") {
  for (const char* name : {"1f1b", "zb-h1", "eager-1f1b"}) {
    CAPTURE(std::string(name));
    SimulateOptions o = options_for(name, 5, 12);
    const double healthy = step_of(o);
    o.faults = {{"slow-rank", 2, 1.4}};
    WhatIf model = model_of(linked_run(o));
    const FixList list = price_fixes(model, {});
    const auto worker =
        std::find_if(list.fixes.begin(), list.fixes.end(), [](const Fix& f) { return f.id == "worker"; });
    REQUIRE(worker != list.fixes.end());
    CHECK(worker->price.step_ns == doctest::Approx(healthy).epsilon(kWithin));
  }
}

TEST_CASE("what-if: balanced stages cost what their simulation does") {
  for (const char* name : {"1f1b", "zb-h1", "fthenb"}) {
    CAPTURE(std::string(name));
    SimulateOptions o = options_for(name, 4, 16);
    o.dp = 2;
    o.faults = {{"slow-stage", 3, 1.75}};  // 8 layers and a head of 6 layers' cost
    WhatIf model = model_of(linked_run(o));
    FixOptions options;
    options.layers = {8, 8, 8, 8};
    const FixList list = price_fixes(model, options);
    CHECK(model.layers().head);
    CHECK_FALSE(model.layers().embedding);
    // 38 layers' cost over four: 10, 10, 9 and 3 + 6, or its like.
    REQUIRE(list.new_layers.size() == 4);
    int32_t sum = 0;
    for (size_t s = 0; s < 4; ++s) {
      sum += list.new_layers[s];
      CHECK(list.new_layers[s] + (s == 3 ? 6 : 0) <= 10);
    }
    CHECK(sum == 32);
    const auto balance =
        std::find_if(list.fixes.begin(), list.fixes.end(), [](const Fix& f) { return f.id == "balance"; });
    REQUIRE(balance != list.fixes.end());
    o.faults.clear();
    for (int32_t s = 0; s < 4; ++s)
      o.faults.push_back({"slow-stage", s, (list.new_layers[s] + (s == 3 ? 6 : 0)) / 8.0});
    CHECK(balance->price.step_ns == doctest::Approx(step_of(o)).epsilon(kWithin));
  }
}

TEST_CASE("what-if: twice the micro-batches") {
  for (const ScheduleDef* def : schedules()) {
    CAPTURE(std::string(def->name));
    SimulateOptions o = options_for(def->name, 4, 8);
    o.costs.latency_ns = 300'000;
    o.reduce_ns = 4'000'000;
    const WhatIf model = model_of(linked_run(o));
    REQUIRE(model.order().known());
    CHECK(model.error().order_ns == doctest::Approx(model.error().recorded_ns).epsilon(kWithin));
    SimulateOptions twice = options_for(def->name, 4, 16);
    twice.costs = o.costs;
    twice.reduce_ns = o.reduce_ns;
    Changes changes;
    changes.micro_batches = 16;
    const Price price = model.price(changes);
    CHECK(price.why_not.en == "");
    CHECK(price.step_ns == doctest::Approx(step_of(twice) / 2).epsilon(kWithin));
    CHECK(price.saving_ns > 0);
  }
}

TEST_CASE("what-if: another schedule costs what its simulation does") {
  for (const char* from : {"1f1b", "fthenb", "vpp", "zb-v"})
    for (const char* to : {"1f1b", "eager-1f1b", "zb-h1", "vpp", "interleaved-zb", "zb-v", "dualpipe-v"}) {
      if (std::string_view(from) == to) continue;
      CAPTURE(std::string(from));
      CAPTURE(std::string(to));
      SimulateOptions whole = options_for("1f1b", 4, 12);
      whole.costs = {8'000'000, 10'000'000, 10'000'000, 20'000'000, 28'000'000, 400'000};
      const auto run = [&](const char* name) {
        SimulateOptions o = options_for(name, 4, 12);
        o.costs = o.schedule.sizes.chunks == 2 ? halved(whole.costs) : whole.costs;
        o.costs.latency_ns = whole.costs.latency_ns;
        return o;
      };
      const WhatIf model = model_of(linked_run(run(from)));
      REQUIRE(model.order().known());
      Changes changes;
      changes.schedule = to;
      const Price price = model.price(changes);
      CHECK(price.why_not.en == "");
      CHECK(price.step_ns == doctest::Approx(step_of(run(to))).epsilon(kWithin));
      CHECK(price.held > 0);
    }
}

TEST_CASE("what-if: half the latency") {
  for (const char* name : {"1f1b", "eager-1f1b", "zb-h1", "vpp", "zb-v", "fthenb"}) {
    CAPTURE(std::string(name));
    SimulateOptions o = options_for(name, 4, 8);
    o.costs.latency_ns = 3'000'000;
    const WhatIf model = model_of(linked_run(o));
    Changes changes;
    changes.latency_ns = 1'500'000;
    const double predicted = model.price(changes).step_ns;
    o.costs.latency_ns = 1'500'000;
    CHECK(predicted == doctest::Approx(step_of(o)).epsilon(kWithin));
    Changes both = changes;  // and through the model of other orders
    both.schedule = name;
    both.chunks = o.schedule.sizes.chunks;
    CHECK(model.price(both).step_ns == doctest::Approx(step_of(o)).epsilon(kWithin));
  }
}

// Returns the changes that remove a fault's effect, for a model of the run that has it.
Changes without(const Fault& f, const SimulateOptions& o, const WhatIf& model) {
  const Schedule& schedule = o.schedule;
  Changes c;
  if (f.kind == "slow-stage") c.scales.push_back({.stage = f.target, .by = 1 / f.factor});
  if (f.kind == "slow-rank")
    c.replaced.emplace_back(f.target / schedule.sizes.stages, f.target % schedule.sizes.stages);
  if (f.kind == "slow-link") c.fair_links = true;
  if (f.kind == "late-launch" || f.kind == "gc") c.no_delay = true;
  if (f.kind == "wrong-order") {
    const ScheduleSizes& sizes = model.order().sizes();
    c.schedule = schedule.name;
    c.chunks = sizes.chunks;
    c.group = sizes.group;
  }
  if (f.kind == "heavy-head")
    for (int32_t stage = 0; stage < schedule.sizes.stages; ++stage)
      for (int32_t chunk = 0; chunk < schedule.sizes.chunks; ++chunk)
        if (virtual_stage(schedule, stage, chunk) == virtual_stage_count(schedule) - 1)
          c.scales.push_back({.stage = stage, .chunk = chunk, .by = 1 / (1 + f.share)});
  if (f.kind == "long-sequences") {  // micro-batches whose first forward takes longer than its cost
    const StepGraph& g = model.graph();
    for (const GraphStep& step : g.steps)
      for (uint32_t op = step.begin; op < step.end; ++op)
        if (g.kind[op] == CellKind::kForward && g.stage(op) == 0 && g.chunk[op] == 0 &&
            g.dur_ns[op] > 1.5 * static_cast<double>(o.costs.forward_ns))
          c.scales.push_back({.dp = g.dp(op), .micro_batch = g.micro_batch[op], .step = step.step, .by = 1 / f.factor});
  }
  return c;
}

TEST_CASE("what-if: a fault taken away is the run without it, whatever the schedule and the fault") {
  for (const ScheduleDef* def : schedules())
    for (const char* text : {"slow-stage:1,1.5", "slow-rank:5,1.4", "slow-link:1,2,+6ms", "late-launch:2,3ms",
                             "gc:15ms,0.03", "wrong-order:1", "heavy-head:0.8", "long-sequences:0.2,2"}) {
      const std::string what = std::string(def->name) + " " + text;
      CAPTURE(what);
      const Fault fault = *parse_fault(text);
      SimulateOptions o = options_for(def->name, 4, 8);
      o.dp = 2;
      o.costs.latency_ns = 300'000;
      // The halves of an overlapped cell cannot be separated: its share of the fault is spread over both.
      bool overlaps = false;
      for (const RankOrder& order : o.schedule.ranks)
        for (const ScheduleCell& cell : order) overlaps |= cell.overlapped();
      if (overlaps && (fault.kind == "heavy-head" || fault.kind == "long-sequences")) continue;
      const double healthy_ns = step_of(o);
      o.faults = {fault};
      const Result<SimulatedRun> possible = simulate_run(o);
      if (!possible && fault.kind == "wrong-order") continue;  // no two neighbours of this stage can be swapped
      const WhatIf model = model_of(linked_run(o));
      REQUIRE(model.order().known());
      if (fault.kind == "wrong-order" && !model.order().leaves_schedule()) continue;  // read as another schedule
      const Price price = model.price(without(fault, o, model));
      CHECK(price.why_not.empty());
      CHECK(price.step_ns == doctest::Approx(healthy_ns).epsilon(kWithin));
    }
}

TEST_CASE("what-if: a wrong order is restored, and named") {
  SimulateOptions o = options_for("1f1b", 4, 8);
  const double right_ns = step_of(o);
  o.faults = {*parse_fault("wrong-order:1,2")};
  WhatIf model = model_of(linked_run(o));
  REQUIRE(model.order().leaves_schedule());
  CHECK(model.error().order_ns == doctest::Approx(model.error().recorded_ns).epsilon(1e-6));
  const FixList list = price_fixes(model, {});
  const auto fix = std::find_if(list.fixes.begin(), list.fixes.end(), [](const Fix& f) { return f.id == "order"; });
  REQUIRE(fix != list.fixes.end());
  CHECK(fix->price.saving_ns > 0);
  CHECK(fix->price.step_ns == doctest::Approx(right_ns).epsilon(kWithin));
  CHECK(fix->name.en == "restore the order of 1f1b");
}

TEST_CASE("what-if: bounds come last, and none is below the fix that it bounds") {
  SimulateOptions o = options_for("1f1b", 4, 16);
  o.jitter = 0.03;
  o.dp = 2;
  o.faults = {*parse_fault("slow-stage:3,1.5"), *parse_fault("long-sequences:0.2,2")};
  WhatIf model = model_of(linked_run(o));
  const FixList list = price_fixes(model, {});
  bool bounds = false;
  double balance = 0;
  for (const Fix& fix : list.fixes) {
    bounds |= fix.bound;
    CHECK(fix.bound == bounds);
    if (fix.id == "balance") balance = fix.price.saving_ns;
    if (fix.id == "even" || fix.id == "fair-stage") {
      CHECK(fix.price.saving_ns >= balance);
      CHECK(fix.how.en.find("pipeline-model-parallel-layout") != std::string::npos);
    }
  }
  CHECK(bounds);
  CHECK(balance > 0);
}

TEST_CASE("what-if: a rank that starts late is no slow link") {
  SimulateOptions o = options_for("1f1b", 4, 8);
  o.costs.latency_ns = 300'000;
  o.faults = {*parse_fault("late-launch:2,3ms")};
  const WhatIf model = model_of(linked_run(o));
  CHECK(model.price({.fair_links = true}).share() < 0.001);
  CHECK(model.price({.no_delay = true}).share() > 0.02);
}

TEST_CASE("what-if: several at once are replayed, not added") {
  SimulateOptions o = options_for("1f1b", 4, 8);
  o.dp = 2;
  o.faults = {{"slow-rank", 5, 1.5}};
  WhatIf model = model_of(linked_run(o));
  const FixList list = price_fixes(model, {});
  const auto best = std::find_if(list.fixes.begin(), list.fixes.end(), [](const Fix& f) { return f.id == "combined"; });
  REQUIRE(best != list.fixes.end());
  CHECK(best == list.fixes.begin());  // sorted by what they save
  for (size_t i = 1; i < list.fixes.size(); ++i)
    CHECK(list.fixes[i - 1].price.saving_ns >= list.fixes[i].price.saving_ns);
  double sum = 0;
  for (const Fix& fix : list.fixes)
    if (fix.id == "worker" || fix.id == "micro-batches" || (fix.id == "schedule" && fix.changes.schedule == "zb-v"))
      sum += fix.price.saving_ns;
  CHECK(best->price.saving_ns < sum);
  SimulateOptions fixed = options_for("zb-v", 4, 16);
  fixed.costs = halved(o.costs);
  CHECK(best->price.step_ns == doctest::Approx(step_of(fixed) / 2).epsilon(kWithin));
}

TEST_CASE("what-if: orders that hold more activations are asked for") {
  WhatIf model = model_of(linked_run(options_for("1f1b", 4, 12)));
  CHECK(model.order().present().max_held() == 4);
  const FixList same = price_fixes(model, {});
  CHECK(same.over_memory > 0);
  for (const Fix& fix : same.fixes) CHECK_FALSE(fix.price.held > 4);
  FixOptions more;
  more.more_memory = true;
  const FixList list = price_fixes(model, more);
  CHECK(list.over_memory == 0);
  CHECK(std::any_of(list.fixes.begin(), list.fixes.end(),
                    [](const Fix& f) { return f.changes.schedule == "vpp" && f.price.held > 4; }));
}

TEST_CASE("what-if: less than its own uncertainty is no gain") {
  Price price;
  price.recorded_ns = 100e6;
  price.steps = 10;
  price.saving_ns = 1e6;
  price.error_ns = 0.6e6;
  CHECK_FALSE(price.gains());
  price.error_ns = 0.4e6;
  CHECK(price.gains());
  price.saving_ns = 0.05e6;  // below 0.1 % of the step
  price.error_ns = 0;
  CHECK_FALSE(price.gains());
  // A healthy run of one replica has no slow worker, no stage to balance, no slow link.
  SimulateOptions o = options_for("1f1b", 4, 8);
  o.jitter = 0.03;
  o.steps = 12;
  WhatIf model = model_of(linked_run(o));
  for (const Fix& fix : price_fixes(model, {}).fixes) {
    CAPTURE(fix.name.en);
    CHECK((fix.id == "schedule" || fix.id == "micro-batches" || fix.id == "combined" || fix.id == "jitter"));
  }
}

TEST_CASE("what-if: the same bytes whatever the number of threads") {
  SimulateOptions o = options_for("vpp", 4, 8);
  o.dp = 4;
  o.jitter = 0.1;
  o.faults = {{"slow-rank", 5, 1.3}};
  const Trace trace = linked_run(o);
  const auto all = [&] {
    WhatIf model = model_of(trace);
    std::string text;
    const FixList list = price_fixes(model, {});
    for (const Table& table : what_if_tables(&model, list))
      for (size_t r = 0; r < table.row_count(); ++r)
        for (size_t c = 0; c < table.columns().size(); ++c) text += table.raw_text(r, c) + ",";
    return text;
  };
  set_thread_count(1);
  const std::string one = all();
  set_thread_count(7);
  CHECK(all() == one);
  set_thread_count(0);
}

TEST_CASE("what-if: what cannot be is said") {
  SimulateOptions o = options_for("1f1b", 4, 8);
  const Trace trace = linked_run(o);
  const WhatIf model = model_of(trace);
  Changes changes;
  changes.schedule = "no-such";
  CHECK(model.price(changes).why_not.en.find("no schedule") != std::string::npos);
  changes.schedule = "dualpipe";
  CHECK(model.price(changes).why_not.en.find("two ranks") != std::string::npos);
  CHECK_FALSE(model.price(changes).gains());
  Changes nobody;  // a worker that is not there changes nothing
  nobody.replaced = {{7, 99}, {-1, -1}};
  CHECK(model.price(nobody).saving_ns == 0);

  // Without a schedule the recorded order can still be priced.
  Trace odd = linked_run(o);
  for (size_t i = 0; i < odd.cells.size(); ++i) odd.cells.micro_batch[i] = kUnknown;
  for (Part& part : odd.parts) part.stage = kUnknown;
  odd.links.clear();
  Diagnostics notes;
  Result<WhatIf> lone = what_if_of(odd, notes);
  if (lone) {
    FixOptions own;
    own.own.emplace_back();
    own.own.back().scales = {{.by = 0.5}};
    own.own_names = {"all at half"};
    const FixList list = price_fixes(*lone, own);
    REQUIRE_FALSE(list.fixes.empty());
    CHECK(list.fixes.front().price.saving_ns > 0);
  }

  Trace empty;
  CHECK_FALSE(what_if_of(empty, notes));

  // Damaged: replicas of huge numbers, cells backwards in time.
  Trace bad = linked_run(o);
  bad.parts[1].dp = 2'000'000'000;
  for (size_t i = 0; i < bad.cells.size(); i += 3) std::swap(bad.cells.start_ns[i], bad.cells.end_ns[i]);
  bad.cells.sort();
  link_cells(bad);
  if (Result<WhatIf> damaged = what_if_of(bad, notes)) CHECK(price_fixes(*damaged, {}).tried >= 0);
}

TEST_CASE("what-if: --scale") {
  const Result<CellScale> scale = parse_scale("stage=3,kind=F,by=0.9");
  REQUIRE(scale);
  CHECK(*scale == CellScale{.stage = 3, .kind = CellKind::kForward, .by = 0.9});
  const Result<CellScale> set = parse_scale("rank=5, dp=1 ,chunk=0,micro_batch=2,step=7,set=3ms");
  REQUIRE(set);
  CHECK(*set == CellScale{.rank = 5, .dp = 1, .chunk = 0, .micro_batch = 2, .step = 7, .set_ns = 3e6});
  for (const char* bad : {"", "stage=3", "by=2,set=1", "by=-1", "by=x", "set=-1", "kind=Z,by=1", "lane=2,by=1",
                          "stage=-1,by=1", "stage=1.5,by=1", "by=1e9", "stage,by=1", "by=nan"}) {
    CAPTURE(bad);
    const Result<CellScale> wrong = parse_scale(bad);
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().hint.find("stage=3,kind=F,by=0.9") != std::string::npos);
  }
}

TEST_CASE("what-if: the straggler study's jobs") {
  struct Job {
    const char* file;
    double saved_s;  // T − T without the last stage's slowness, of its answers (ms-*.json: tori − trem)
  };
  for (const Job& job : {Job{"trace-ST.csv.gz", 2.172696813310722 - 1.7710396162385678},
                         Job{"trace-SE.csv.gz", 9.066555374169395 - 6.887146571307997}}) {
    const std::string path = shared_data(std::string("pipeline_ops/bytedance/") + job.file);
    if (path.empty()) return;
    CAPTURE(job.file);
    Result<Trace> trace = open_trace({path}, {});
    REQUIRE(trace);
    const WhatIf model = model_of(*trace);
    CHECK(std::abs(model.error().graph_ns / model.error().recorded_ns - 1) < 0.005);
    CHECK(std::abs(model.error().order_ns / model.error().recorded_ns - 1) < 0.005);
    Changes fair;
    fair.fair_stage = model.graph().stage_count - 1;
    CHECK(model.price(fair).saving_ns / 1e9 == doctest::Approx(job.saved_s).epsilon(0.002));
  }
}
