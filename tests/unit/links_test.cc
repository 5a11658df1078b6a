
#include <doctest/doctest.h>

#include <cmath>

#include "analyses/links/common_ends.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/measure/link_transfers.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"
#include "unit/facts_of_trace.h"

using namespace stageline;

namespace {

SimulateOptions usual() {
  SimulateOptions o;
  o.dp = 4;
  o.steps = 6;
  o.jitter = 0.03;
  o.costs.latency_ns = 200'000;
  o.messages = true;
  return o;
}

Trace simulated(SimulateOptions o, const std::vector<const char*>& faults = {}) {
  Result<Schedule> made = make_schedule("1f1b", {.stages = 4, .micro_batches = 16});
  REQUIRE(made);
  o.schedule = std::move(*made);
  for (const char* text : faults) o.faults.push_back(*parse_fault(text));
  Result<SimulatedRun> run = simulate_run(o);
  REQUIRE(run);
  run->trace.cells.sort();
  link_cells(run->trace);
  return std::move(run->trace);
}

TEST_CASE("when most links are slow, the usual time is that of the quick ones") {
  CHECK(usual_link_ns({}) == 0);
  CHECK(usual_link_ns({7}) == 7);
  CHECK(usual_link_ns({0.2, 3.2, 3.3}) == 0.2);
  CHECK(usual_link_ns({0.2, 0.2, 1.7, 1.7, 1.7, 1.7}) == 0.2);
  CHECK(usual_link_ns({1.0, 1.2, 1.4, 1.9}) == 1.2);      // they scatter, and are one kind
  CHECK(usual_link_ns({0.2, 0.2, 0.2, 3.2}) == 0.2);      // the slow one is alone: the middle says the same
  CHECK(usual_link_ns({0.2, 3, 3, 3, 3, 3, 3, 3}) == 3);  // one of eight is fast: that one is the exception
  CHECK(usual_link_ns({0.2, 3.2, 3.3, 9}, 0) == 3.3);     // one that does not count
  CHECK(usual_link_ns({7}, 0) == 0);
  CHECK(usual_link_ns({0, 3, 3}) == 3);  // no message takes no time: that one is ignored
}

Links found(const Trace& trace) {
  Diagnostics notes;
  Result<StepGraph> graph = build_step_graph(trace, notes);
  REQUIRE(graph);
  return find_links(trace, *graph);
}

const LinkEdge& edge_of(const Links& links, int32_t from, int32_t to) {
  for (const LinkEdge& edge : links.edges)
    if (edge.from_part == from && edge.to_part == to) return edge;
  FAIL("no such edge");
  return links.edges.front();
}

double mean_step_ns(const Trace& trace) {
  double sum = 0;
  const auto ranges = step_ranges(trace.cells);
  for (const StepRange& r : ranges) {
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = r.begin; i < r.end; ++i)
      if (is_compute(trace.cells.kind[i])) {
        first = std::min(first, trace.cells.start_ns[i]);
        last = std::max(last, trace.cells.end_ns[i]);
      }
    sum += static_cast<double>(last - first);
  }
  return sum / static_cast<double>(ranges.size());
}

}  // namespace

TEST_CASE("links: a transfer begins when both sides are there") {
  // Stage 0 sends at 100, stage 1 has posted its receive at 40: until 130 that is 30. The second is received late.
  Trace trace;
  trace.clock = ClockState::kShared;
  for (int32_t rank = 0; rank < 2; ++rank) {
    Part part;
    part.rank = part.stage = rank;
    part.dp = 0;
    trace.parts.push_back(part);
  }
  trace.cells.add({0, 0, CellKind::kForward, 0, 0, 0, 100, kNoSlice});
  trace.cells.add({0, 0, CellKind::kSendForward, 0, 0, 100, 130, kNoSlice});
  trace.cells.add({0, 0, CellKind::kForward, 0, 1, 100, 200, kNoSlice});
  trace.cells.add({0, 0, CellKind::kSendForward, 0, 1, 200, 275, kNoSlice});
  trace.cells.add({0, 1, CellKind::kRecvForward, 0, 0, 40, 130, kNoSlice});
  trace.cells.add({0, 1, CellKind::kForward, 0, 0, 130, 230, kNoSlice});
  trace.cells.add({0, 1, CellKind::kRecvForward, 0, 1, 230, 275, kNoSlice});
  trace.cells.add({0, 1, CellKind::kForward, 0, 1, 275, 375, kNoSlice});
  trace.cells.sort();
  link_cells(trace);
  Diagnostics notes;
  Result<StepGraph> graph = build_step_graph(trace, notes);
  REQUIRE(graph);
  const LinkTransfers transfers = find_transfers(trace, *graph);
  CHECK(transfers.evidence == LinkEvidence::kMessages);
  REQUIRE(transfers.size() == 2);
  CHECK(transfers.at(0).ns == 30);
  CHECK(transfers.at(1).ns == 45);
  CHECK(transfers.at(0).end_gap_ns == 0);
  const Links links = find_links(trace, *graph);
  REQUIRE(links.edges.size() == 1);
  CHECK(links.edges[0].messages == 2);
  CHECK(links.edges[0].reading == LinkReading::kAlone);
  CHECK(links.classes[0].median_ns == 30);  // the lower middle one
}

TEST_CASE("links: without messages a gap counts only where the receiver waited") {
  Trace trace;
  trace.clock = ClockState::kShared;
  for (int32_t rank = 0; rank < 2; ++rank) {
    Part part;
    part.rank = part.stage = rank;
    part.dp = 0;
    trace.parts.push_back(part);
  }
  trace.cells.add({0, 0, CellKind::kForward, 0, 0, 0, 100, kNoSlice});
  trace.cells.add({0, 0, CellKind::kForward, 0, 1, 100, 200, kNoSlice});
  trace.cells.add({0, 1, CellKind::kForward, 0, 0, 107, 300, kNoSlice});
  trace.cells.add({0, 1, CellKind::kForward, 0, 1, 302, 400, kNoSlice});  // busy until 300
  trace.cells.sort();
  link_cells(trace);
  Diagnostics notes;
  Result<StepGraph> graph = build_step_graph(trace, notes);
  REQUIRE(graph);
  const LinkTransfers transfers = find_transfers(trace, *graph);
  CHECK(transfers.evidence == LinkEvidence::kGaps);
  REQUIRE(transfers.size() == 1);
  CHECK(transfers.at(0).ns == 7);
}

TEST_CASE("links: a healthy run has no slow link, whatever the seed and the jitter up to 5 %") {
  for (const double jitter : {0.0, 0.05})
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      CAPTURE(jitter);
      CAPTURE(seed);
      SimulateOptions o = usual();
      o.jitter = jitter;
      o.seed = seed;
      o.messages = seed % 3 != 0;
      const Trace trace = simulated(o);
      const Links links = found(trace);
      CHECK(links.edges.size() == 24);
      CHECK(common_ends(trace, links).empty());
      for (const LinkEdge& edge : links.edges) CHECK(edge.reading == LinkReading::kFine);
    }
}

TEST_CASE("links: one slow link is a cell, priced as the run without it") {
  for (const bool messages : {true, false}) {
    CAPTURE(messages);
    SimulateOptions o = usual();
    o.messages = messages;
    const double healthy_ns = mean_step_ns(simulated(o));
    const Trace trace = simulated(o, {"slow-link:1,2,+5ms,2"});
    const Links links = found(trace);
    const LinkEdge& slow = edge_of(links, 9, 10);
    CHECK(slow.reading == LinkReading::kCell);
    CHECK(slow.median_ns == doctest::Approx(5.2e6).epsilon(0.03));
    CHECK(slow.ratio == doctest::Approx(26).epsilon(0.05));
    CHECK(slow.slow_steps == 6);
    CHECK(slow.direction_known);
    int64_t others = 0;
    for (const LinkEdge& edge : links.edges) others += edge.reading == LinkReading::kFine ? 1 : 0;
    CHECK(others == 23);
    const double true_saving = mean_step_ns(trace) - healthy_ns;
    CHECK(slow.saving_ns == doctest::Approx(true_saving).epsilon(0.05));
    CHECK(common_ends(trace, links).empty());
  }
}

TEST_CASE("links: all links of a rank are its end, all of a pair of stages their boundary") {
  const Trace end = simulated(
      usual(), {"slow-link:1,2,+3ms,0", "slow-link:2,1,+3ms,0", "slow-link:1,0,+3ms,0", "slow-link:0,1,+3ms,0"});
  const Links by_end = found(end);
  CHECK(edge_of(by_end, 1, 2).reading == LinkReading::kRow);
  CHECK(edge_of(by_end, 0, 1).reading == LinkReading::kColumn);
  std::vector<Finding> findings = common_ends(end, by_end);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].id == "link.endpoint");
  CHECK(findings[0].title.en.find("Rank 1 sends and receives") != std::string::npos);

  for (const bool messages : {true, false}) {
    CAPTURE(messages);
    SimulateOptions o = usual();
    o.messages = messages;
    const double healthy_ns = mean_step_ns(simulated(o));
    const Trace boundary = simulated(o, {"slow-link:1,2,+3ms", "slow-link:2,1,+3ms"});
    const Links links = found(boundary);
    CHECK(edge_of(links, 5, 6).reading == LinkReading::kBoundary);
    findings = common_ends(boundary, links);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].id == "link.boundary");
    const double true_share = (mean_step_ns(boundary) - healthy_ns) / mean_step_ns(boundary);
    CHECK(findings[0].weight == doctest::Approx(true_share).epsilon(0.05));
  }
}

TEST_CASE("links: slow in few steps is no slow link, and one stage has none") {
  SimulateOptions o = usual();
  Trace trace = simulated(o);
  for (size_t i = 0; i < trace.cells.size(); ++i)  // one step of one link
    if (trace.cells.step[i] == 2 && ((trace.cells.part[i] == 1 && trace.cells.kind[i] == CellKind::kSendForward) ||
                                     (trace.cells.part[i] == 2 && trace.cells.kind[i] == CellKind::kRecvForward)))
      trace.cells.end_ns[i] += 4'000'000;
  const Links links = found(trace);
  const LinkEdge& edge = edge_of(links, 1, 2);
  CHECK(edge.slow_steps == 1);
  CHECK(edge.reading == LinkReading::kSometimes);
  CHECK(common_ends(trace, links).empty());

  Trace one = simulated(o);
  for (Part& part : one.parts) part.stage = 0;
  one.cells.filter([&](size_t i) { return is_compute(one.cells.kind[i]); });
  link_cells(one);
  CHECK(found(one).evidence == LinkEvidence::kNone);
}
