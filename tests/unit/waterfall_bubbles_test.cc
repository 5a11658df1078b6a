#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "pipeline/measure/waterfall.h"
#include "unit/facts_of_trace.h"
#include "unit/simulated_run.h"

using namespace stageline;

namespace {

// Bubbles are the stages' waiting, piece by piece.
void check_bubbles(const Trace& trace) {
  std::vector<WaterfallBubble> bubbles;
  const Waterfall w = waterfall_of(
      trace, theory_of(trace), pipeline_sums(trace),
      [&](const std::vector<WaterfallBubble>& more) { bubbles.insert(bubbles.end(), more.begin(), more.end()); });
  REQUIRE(w.known());
  REQUIRE(std::none_of(w.steps.begin(), w.steps.end(), [](const WaterfallStep& step) { return step.outlier; }));
  REQUIRE(!bubbles.empty());
  std::vector<std::array<double, kPipelineParts - 1>> sums(w.stages.size());
  for (const WaterfallBubble& b : bubbles) {
    double all = 0;
    for (size_t k = 0; k < b.part_ns.size(); ++k) {
      sums[trace.parts[b.part].stage][k] += static_cast<double>(b.part_ns[k]);
      all += static_cast<double>(b.part_ns[k]);
    }
    CHECK(std::abs(all - static_cast<double>(b.end_ns - b.start_ns)) <= 1e-6 * w.stages[0].pipeline_ns);
  }
  for (size_t s = 0; s < sums.size(); ++s)
    for (size_t k = 0; k < sums[s].size(); ++k)
      CHECK(std::abs(sums[s][k] / static_cast<double>(w.stages[s].ranks) - w.stages[s].part_ns[k + 1]) <=
            1e-5 * w.stages[s].pipeline_ns);
}

// The bubbles of step 1 alone are those of the whole run: the latency of messages comes from all steps.
void check_one_step(const Trace& trace) {
  const TheoryRun theory = theory_of(trace);
  const auto bubbles_of = [&](const IsStep& of_step, Waterfall& whole) {
    std::vector<std::pair<int64_t, double>> out;
    whole = waterfall_of(
        trace, theory, pipeline_sums(trace),
        [&](const std::vector<WaterfallBubble>& more) {
          for (const WaterfallBubble& b : more)
            if (b.step == 1) out.emplace_back(b.start_ns, static_cast<double>(b.part_ns[3]));
        },
        of_step);
    return out;
  };
  Waterfall whole, one;
  CHECK(bubbles_of(nullptr, whole) == bubbles_of([](int32_t step) { return step == 1; }, one));
  REQUIRE(one.steps.size() == 2);  // replicas
  for (const WaterfallStep& step : one.steps) {
    const auto same = std::find_if(whole.steps.begin(), whole.steps.end(),
                                   [&](const WaterfallStep& w) { return w.step == step.step && w.dp == step.dp; });
    REQUIRE(same != whole.steps.end());
    CHECK(same->part_ns == step.part_ns);
  }
}

}  // namespace

TEST_CASE("waterfall: bubbles add up to what each stage waits for, part by part") {
  for (const char* name : {"1f1b", "fthenb", "vpp", "zb-h1", "zb-v", "dualpipe-v"})
    for (const bool messages : {false, true}) {
      CAPTURE(name);
      CAPTURE(messages);
      SimulateOptions o;
      o.schedule = schedule_of(name, 4, 10);
      if (std::string_view(name) == "vpp") o.schedule = schedule_of(name, 4, 8);
      o.dp = 2;
      o.jitter = 0.05;
      o.costs.latency_ns = 700'000;
      o.messages = messages;
      o.faults = {*parse_fault("slow-stage:2,1.2")};
      const Trace run = simulated(o);
      check_bubbles(run);
      check_one_step(run);
    }
}
