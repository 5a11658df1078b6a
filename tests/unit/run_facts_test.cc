// Facts of a run are made once, whoever asks, from however many threads.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <optional>

#include "base/parallel.h"
#include "diagnosis/explain.h"
#include "engine/engine.h"
#include "facts/pipeline_facts.h"
#include "unit/facts_of_trace.h"
#include "unit/simulated_run.h"

using namespace stageline;

namespace {

std::atomic<int> counted_makes{0};

struct CountedFact {
  using Value = int;
  static Value make(const Run& run) {
    ++counted_makes;
    std::atomic<int64_t> sum{0};
    parallel_for(100, [&](size_t i) { sum += static_cast<int64_t>(i); });
    return static_cast<int>(sum) + static_cast<int>(run.trace().parts.size());
  }
};

struct UpperFact {
  using Value = int;
  static Value make(const Run& run) { return run.fact<CountedFact>() + 1; }
};

Trace slow_stage_run() {
  SimulateOptions o;
  o.schedule = schedule_of("1f1b", 4, 8);
  o.steps = 6;
  o.dp = 2;
  o.faults = {*parse_fault("slow-stage:2,1.4")};
  return simulated(o);
}

}  // namespace

TEST_CASE("facts: each is made once, by the thread that asks first, and others find it") {
  const Trace trace;
  const Run run(trace);
  CHECK(run.made<CountedFact>() == nullptr);
  counted_makes = 0;
  std::atomic<int> wrong{0};
  parallel_for(64, [&](size_t i) {
    const int value = i % 2 == 0 ? run.fact<CountedFact>() : run.fact<UpperFact>() - 1;
    if (value != 4950) ++wrong;
  });
  CHECK(wrong == 0);
  CHECK(counted_makes == 1);
  CHECK(run.made_count() == 2);
  REQUIRE(run.made<CountedFact>() != nullptr);
  CHECK(run.made<CountedFact>() == &run.fact<CountedFact>());
}

TEST_CASE("facts: explain and all tables of a run share sums, theory, coverage, waterfall, graphs and causes") {
  const Trace trace = slow_stage_run();
  const auto run = std::make_shared<const Run>(trace);
  const Explanation e = explain(*run, true);
  CHECK_FALSE(e.findings.empty());
  const size_t made = run->made_count();
  const PipelineSums* sums = &sums_of(*run);
  const TheoryRun* theory = &theory_of(*run);
  const StepGraph* graph = graph_of(*run, LaunchRule::kInOrder).graph.get();
  const CauseList* causes = &causes_of(*run);
  CHECK(run->made_count() == made);  // explain() had made them all
  Diagnostics notes;
  CHECK_FALSE(all_tables(run, notes).empty());
  CHECK(run->made_count() == made + 2);  // and tables needed two more: who the stragglers are, and what they cost
  const Slowdown* slow = &slowdown_of(*run);
  CHECK(run->made_count() == made + 2);
  CHECK_FALSE(all_tables(run, notes).empty());
  CHECK(&slowdown_of(*run) == slow);
  CHECK(&sums_of(*run) == sums);
  CHECK(&theory_of(*run) == theory);
  CHECK(graph_of(*run, LaunchRule::kInOrder).graph.get() == graph);
  CHECK(&causes_of(*run) == causes);
}
