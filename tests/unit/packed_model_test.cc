// The what-if model in a report must give the same answers as the run itself, to the last byte.
#include "diagnosis/what_if/packed_model.h"

#include <doctest/doctest.h>

#include <memory>

#include "diagnosis/what_if/what_if_fixes.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"
#include "server/pipeline/what_if_reply.h"
#include "unit/facts_of_trace.h"
#include "unit/make_trace.h"

using namespace stageline;

namespace {

struct Case {
  Trace trace;
  WhatIf model;
  AskedModel asked;
};

// Replicas with a slow worker, jitter, messages: what every rule of a world looks at.
std::unique_ptr<Case> case_of(const char* name, int32_t chunks, bool messages) {
  ScheduleSizes sizes;
  sizes.stages = 4;
  sizes.micro_batches = 12;
  sizes.chunks = chunks;
  Result<Schedule> schedule = make_schedule(name, sizes);
  REQUIRE(schedule);
  SimulateOptions o;
  o.schedule = std::move(*schedule);
  o.dp = 2;
  o.steps = 3;
  o.costs.latency_ns = 333'333;
  o.optimizer_ns = 5'000'000;
  o.jitter = 0.05;
  o.messages = messages;
  o.faults = {{"slow-rank", 5, 1.4}};
  Result<SimulatedRun> run = simulate_run(o);
  REQUIRE(run);
  run->trace.cells.sort();
  link_cells(run->trace);
  auto made = std::make_unique<Case>();
  made->trace = std::move(run->trace);
  Diagnostics notes;
  Result<WhatIf> model = what_if_of(made->trace, notes);
  REQUIRE(model);
  made->model = std::move(*model);
  made->asked.zero_ns = 12'345;
  made->asked.model = &made->model;
  for (const Fix& fix : price_fixes(made->model, {}).fixes) made->asked.fixes.push_back(fix.changes);
  made->asked.fixes.push_back({});
  made->asked.fixes.push_back({.more_in_flight = {2, 1, 1, 0}});
  for (const Part& part : made->trace.parts) {
    made->asked.dp.push_back(part.dp);
    made->asked.stage.push_back(part.stage);
  }
  return made;
}

std::string said(const AskedModel& asked, const std::string& target) {
  const Result<Query> query = parse_target(target);
  REQUIRE(query);
  const Result<std::string> reply = what_if_reply(asked, *query);
  return reply ? *reply : "refused: " + reply.error().what;
}

}  // namespace

TEST_CASE("packed model: it answers as the run does") {
  struct Of {
    const char* name;
    int32_t chunks;
    bool messages;
  };
  for (const Of& of :
       {Of{"1f1b", 1, false}, {"1f1b", 1, true}, {"vpp", 2, true}, {"zb-v", 2, false}, {"dualpipe-v", 2, false}}) {
    CAPTURE(std::string(of.name));
    const std::unique_ptr<Case> run = case_of(of.name, of.chunks, of.messages);
    const std::string bytes = packed_model(run->asked);
    CHECK(bytes.size() < run->model.graph().size() * 24);
    std::optional<RestoredModel> restored = restored_model(bytes);
    REQUIRE(restored);
    restored->asked.model = &restored->model;
    CHECK(restored->model.graph().start_ns == run->model.graph().start_ns);
    CHECK(restored->model.graph().cell == run->model.graph().cell);
    REQUIRE(run->asked.fixes.size() > 2);
    std::vector<std::string> asked = {"scale=by%3D0.87",
                                      "scale=stage%3D2%2Cby%3D0.5&step=1",
                                      "scale=rank%3D5%2Cset%3D3ms&step=2&dp=1",
                                      "micro_batches=24&step=1",
                                      "schedule=1f1b&step=0",
                                      "schedule=zb-h1&latency_ns=0&step=1",
                                      "latency_ns=0&step=2",
                                      "schedule=gpipe",
                                      "scale=stage%3D99%2Cby%3D2",
                                      "schedule=dualpipe&micro_batches=3"};
    for (size_t fix = 0; fix < run->asked.fixes.size(); ++fix) asked.push_back("step=1&fix=" + std::to_string(fix));
    if (std::string(of.name) == "1f1b") {
      const size_t fixes = run->asked.fixes.size();
      const auto of_fix = [&](size_t fix) {
        return said(run->asked, "/api/pipeline/what-if?step=1&fix=" + std::to_string(fix));
      };
      CHECK(of_fix(fixes - 1) != of_fix(fixes - 2));
    }
    for (const std::string& one : asked) {
      CAPTURE(one);
      CHECK(said(restored->asked, "/api/pipeline/what-if?" + one) == said(run->asked, "/api/pipeline/what-if?" + one));
    }
    // Packing again gives the same bytes; a cut model is refused.
    CHECK(packed_model(restored->asked) == bytes);
    for (const size_t cut : {size_t{0}, size_t{1}, bytes.size() / 2, bytes.size() - 1})
      CHECK_FALSE(restored_model(bytes.substr(0, cut)));
    CHECK_FALSE(restored_model(bytes + "x"));
  }
}

TEST_CASE("packed model: operations of a group start when they started") {
  const Trace trace = testing::two_stages();
  Diagnostics notes;
  const Result<WhatIf> model = what_if_of(trace, notes);
  REQUIRE(model);
  const StepGraph& graph = model->graph();
  REQUIRE(graph.groups.size() == 2);
  AskedModel asked;
  asked.model = &*model;
  const std::optional<RestoredModel> restored = restored_model(packed_model(asked));
  REQUIRE(restored);
  CHECK(restored->model.graph().start_ns == graph.start_ns);
  CHECK(restored->model.graph().cell == graph.cell);
}
