// Recognition: the schedule that made a run comes back, whatever noise, gaps or labels; real runs are what they are
// known to be.
#include "pipeline/order/recognise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "diagnosis/causes/findings.h"
#include "engine/engine.h"
#include "model/run_extent.h"
#include "pipeline/order/rank_lists.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"
#include "shared_data.h"
#include "unit/facts_of_trace.h"

using namespace stageline;

namespace {

Trace simulated(std::string_view name, int32_t p, int32_t m, int32_t steps = 2, double jitter = 0, uint64_t seed = 1,
                int32_t dp = 1) {
  const ScheduleDef* def = find_schedule(name);
  REQUIRE(def != nullptr);
  Result<Schedule> schedule = make_schedule(name, {.stages = p, .micro_batches = m, .chunks = def->default_chunks});
  REQUIRE_MESSAGE(schedule, std::string(name));
  SimulateOptions o;
  o.schedule = std::move(*schedule);
  o.steps = steps;
  o.jitter = jitter;
  o.seed = seed;
  o.dp = dp;
  Result<SimulatedRun> run = simulate_run(o);
  REQUIRE(run);
  run->trace.cells.sort();
  run->trace.pipeline_stages = p;
  return std::move(run->trace);
}

// The schedules whose lists are one's own at these sizes are as good an answer.
bool is(const Recognition& r, const std::string& name) {
  if (!r.recognised) return false;
  return r.best().name == name || std::find(r.same_as.begin(), r.same_as.end(), name) != r.same_as.end();
}

std::string said(const Recognition& r) { return recognition_text(r).en; }

Recognition of_file(const std::string& rel) {
  const Result<Trace> trace = open_trace({shared_data(rel)}, {});
  REQUIRE(trace);
  return recognise(*trace);
}

}  // namespace

TEST_CASE("recognise: every schedule from its own run") {
  for (const ScheduleDef* def : schedules())
    for (const auto& [p, m] : {std::pair(4, 8), std::pair(4, 12), std::pair(2, 6), std::pair(8, 32)}) {
      const std::string name = def->name;
      CAPTURE(name);
      CAPTURE(p);
      const Recognition r = recognise(simulated(name, p, m, 2, 0.1, 3));
      CHECK_MESSAGE(is(r, name), said(r));
      CHECK(r.best().score == 1);
      CHECK(r.best().order_score == 1);
      CHECK(r.best().equal_lists == r.lists);
      CHECK(r.lists == 2 * p);
      CHECK(r.divergences.empty());
      CHECK(r.best().sizes.micro_batches == m);
      // Whatever is not the same list is not claimed to be.
      if (p == 4 && m == 12 && name != "dualpipe-v" && name != "dualpipe-v-mindspeed") {
        CHECK(r.same_as.empty());
        CHECK(r.best().name == name);
      }
    }
}

TEST_CASE("recognise: splitting, W positions and overlaps decide between equal skeletons") {
  const auto second_is_equal = [](const char* name, const char* other) {
    const Recognition r = recognise(simulated(name, 4, 12));
    REQUIRE(r.best().name == name);
    const auto at =
        std::find_if(r.candidates.begin(), r.candidates.end(), [&](const auto& c) { return c.name == other; });
    REQUIRE(at != r.candidates.end());
    CHECK(at->score == 1);
    CHECK(at->order_score < 1);
  };
  second_is_equal("1f1b", "zb-h1");
  second_is_equal("zb-h1", "zb-h1-paddle");
  second_is_equal("zb-h1-paddle", "zb-h1");
  second_is_equal("zb-h2", "eager-1f1b");
  second_is_equal("zb-v", "zbvpp");
  // Without W, I counts as B: 1F1B's list, and ZB-H1's.
  Trace hidden = simulated("zb-h1", 4, 12);
  hidden.cells.filter([&](size_t i) { return hidden.cells.kind[i] != CellKind::kWeightGrad; });
  for (CellKind& kind : hidden.cells.kind) kind = kind == CellKind::kInputGrad ? CellKind::kBackward : kind;
  CHECK(recognise(hidden).best().name == "1f1b");
}

TEST_CASE("recognise: noise, gaps and labels that say nothing") {
  std::mt19937 random(5);
  const auto pick = [&](int min, int max) { return std::uniform_int_distribution<int>(min, max)(random); };
  for (int round = 0; round < 6; ++round)
    for (const ScheduleDef* def : schedules()) {
      const std::string name = def->name;
      const int32_t p = 4, m = 4 * pick(4, 8);
      Trace trace = simulated(name, p, m, 3, 0.2, static_cast<uint64_t>(round + 1), 2);
      CAPTURE(name);
      CAPTURE(m);
      CAPTURE(round);
      // One cell in fifty is lost.
      trace.cells.filter([&](size_t) { return pick(1, 50) > 1; });
      const Recognition gaps = recognise(trace);
      CHECK_MESSAGE(is(gaps, name), said(gaps));
      CHECK(gaps.best().score > 0.9);
      // Labels from 100 on.
      const std::vector<int32_t> labels = trace.cells.micro_batch;
      for (int32_t& mb : trace.cells.micro_batch)
        if (mb != kUnknown) mb += 100;
      const Recognition offset = recognise(trace);
      CHECK_MESSAGE(is(offset, name), said(offset));
      // One label in thirty is unknown.
      trace.cells.micro_batch = labels;
      for (int32_t& mb : trace.cells.micro_batch) mb = pick(1, 30) == 1 ? kUnknown : mb;
      const Recognition some = recognise(trace);
      CHECK_MESSAGE(is(some, name), said(some));
    }
  // Labels in any order, as a shuffling loader might number them.
  for (const ScheduleDef* def : schedules()) {
    const std::string name = def->name;
    CAPTURE(name);
    Trace trace = simulated(name, 4, 16, 2, 0.1);
    std::vector<int32_t> label(16);
    for (size_t i = 0; i < label.size(); ++i) label[i] = static_cast<int32_t>(i) * 7 % 16;
    if (name == "dualpipe")  // each direction has its own half
      for (size_t i = 0; i < label.size(); ++i) label[i] = static_cast<int32_t>(i * 3 % 8 + i / 8 * 8);
    for (int32_t& mb : trace.cells.micro_batch)
      if (mb != kUnknown) mb = label[mb];
    const Recognition r = recognise(trace);
    CHECK_MESSAGE(is(r, name), said(r));
    CHECK(r.renumbered);
    CHECK(r.best().score == 1);
  }
}

TEST_CASE("recognise: sizes and costs by chance, under noise, lost cells and other labels") {
  std::mt19937 random(41);
  const auto pick = [&](int min, int max) { return std::uniform_int_distribution<int>(min, max)(random); };
  std::map<std::string, int> ran;
  for (int round = 0; round < 4; ++round)
    for (const ScheduleDef* def : schedules()) {
      const std::string name = def->name;
      const int32_t p = 2 * pick(1, 3), m = p * pick(2, 4);
      ScheduleSizes sizes{.stages = p, .micro_batches = m, .chunks = def->default_chunks};
      if (def->max_chunks == 64) sizes.chunks = pick(2, 4);
      if (name == "dualpipe-v-mindspeed") sizes.dw_detach = pick(0, 1) == 1;
      Result<Schedule> schedule = make_schedule(name, sizes);
      if (!schedule) continue;
      SimulateOptions o;
      o.schedule = std::move(*schedule);
      o.steps = 2;
      o.jitter = 0.25;
      o.seed = static_cast<uint64_t>(round * 100 + p);
      o.costs = {pick(2, 30) * 100'000, pick(2, 30) * 100'000, pick(2, 30) * 100'000, 0, 0, pick(0, 10) * 100'000};
      o.costs.backward_ns = o.costs.input_ns + o.costs.weight_ns;
      o.costs.overlapped_ns = o.costs.forward_ns + o.costs.backward_ns;
      Result<SimulatedRun> run = simulate_run(o);
      REQUIRE(run);
      Trace& trace = run->trace;
      trace.cells.sort();
      CAPTURE(name);
      CAPTURE(p);
      CAPTURE(m);
      CAPTURE(sizes.chunks);
      const Recognition whole = recognise(trace);
      CHECK_MESSAGE(is(whole, name), said(whole));
      CHECK(whole.best().equal_lists == whole.lists);
      CHECK(whole.best().sizes.stages == p);
      CHECK(whole.best().sizes.micro_batches == m);
      CHECK(whole.best().sizes.chunks == sizes.chunks);
      const int32_t first = pick(1, 5000), apart = pick(1, 9);
      for (int32_t& mb : trace.cells.micro_batch)
        if (mb != kUnknown) mb = first + apart * mb;
      const Recognition renamed = recognise(trace);
      CHECK_MESSAGE(is(renamed, name), said(renamed));
      CHECK(renamed.best().equal_lists == renamed.lists);
      trace.cells.filter([&](size_t) { return pick(1, 100) > 1; });
      const Recognition gaps = recognise(trace);
      // With a hundredth of its cells lost, what is as near is named with it.
      const bool near = is(gaps, name) || runner_up_text(gaps).starts_with(name + " (");
      CHECK_MESSAGE(near, said(gaps));
      CHECK(gaps.best().score > 0.9);
      ++ran[name];
    }
  for (const ScheduleDef* def : schedules()) {
    CAPTURE(std::string(def->name));
    CHECK(ran[def->name] >= 3);
  }
}

TEST_CASE("recognise: odd traces") {
  CHECK(recognise(Trace{}).candidates.empty());
  // MindSpeed numbers its second chunk from m on.
  Trace mindspeed = simulated("dualpipe-v-mindspeed", 4, 12);
  for (size_t i = 0; i < mindspeed.cells.size(); ++i)
    if (mindspeed.cells.chunk[i] == 1) mindspeed.cells.micro_batch[i] += 12;
  const Recognition own_numbers = recognise(mindspeed);
  CHECK_MESSAGE(own_numbers.best().name == "dualpipe-v-mindspeed", said(own_numbers));
  CHECK(own_numbers.best().score == 1);
  // A chunk is unknown, where chunks are numbered separately.
  for (size_t i = 0; i < mindspeed.cells.size(); i += 37) {
    mindspeed.cells.chunk[i] = kUnknown;
    mindspeed.cells.micro_batch[i] += 1000;
  }
  CHECK(recognise(mindspeed).best().name == "dualpipe-v-mindspeed");
  // The micro-batches are unknown.
  Trace unlabelled = simulated("1f1b", 4, 8);
  std::fill(unlabelled.cells.micro_batch.begin(), unlabelled.cells.micro_batch.end(), kUnknown);
  CHECK(recognise(unlabelled).candidates.empty());
  // The stages are unknown.
  Trace placeless = simulated("1f1b", 4, 8, 2, 0, 1, 2);
  for (Part& part : placeless.parts) part.stage = part.dp = kUnknown;
  placeless.pipeline_stages = 0;
  CHECK(said(recognise(placeless)) == "1f1b, 4 stages, 8 micro-batches, 100\u202f% of rank-steps follow its order");
  // Only some ranks were given; the pipeline is known to be longer.
  Trace part_of = simulated("1f1b", 8, 16);
  filter_trace(part_of, {2, 5}, INT64_MIN, INT64_MAX);
  CHECK(said(recognise(part_of)) == "1f1b, 8 stages, 16 micro-batches, 100\u202f% of rank-steps follow its order");
  // The last step was cut in the middle; the others are as before.
  Trace cut = simulated("1f1b", 4, 8, 5);
  cut.cells.filter([&](size_t i) { return cut.cells.step[i] < 4 || cut.cells.kind[i] == CellKind::kForward; });
  const Recognition r = recognise(cut);
  CHECK(r.best().name == "1f1b");
  CHECK(r.best().equal_lists == 16);
  CHECK(r.divergences.size() == 4);
  for (const Divergence& d : r.divergences) CHECK_FALSE(d.is_order);
  // Steps have different sizes, as in a batch-size ramp.
  Trace ramp = simulated("1f1b", 4, 8, 3);
  const Trace larger = simulated("1f1b", 4, 16, 3);
  for (size_t i = 0; i < larger.cells.size(); ++i) {
    Cell cell = larger.cells.at(i);
    cell.step += 3;
    ramp.cells.add(cell);
  }
  ramp.cells.sort();
  CHECK(recognise(ramp).best().equal_lists == 24);
  // A hostile file may claim few cells and huge sizes.
  Trace huge = simulated("1f1b", 2, 2, 1);
  huge.parts[1].stage = 4095;
  huge.cells.chunk[0] = 63;
  huge.cells.chunk[1] = INT32_MAX;
  huge.cells.micro_batch[2] = INT32_MAX;
  CHECK(recognise(huge).candidates.empty());
}

TEST_CASE("recognise: where a run leaves its schedule") {
  Trace trace = simulated("1f1b", 4, 8, 3);
  // Rank 1 runs its first backward one forward too early, in step 1.
  Cells& cells = trace.cells;
  std::vector<size_t> own;
  for (size_t i = 0; i < cells.size(); ++i)
    if (cells.step[i] == 1 && cells.part[i] == 1) own.push_back(i);
  REQUIRE(cells.kind[own[2]] == CellKind::kForward);
  REQUIRE(cells.kind[own[3]] == CellKind::kBackward);
  std::swap(cells.kind[own[2]], cells.kind[own[3]]);
  std::swap(cells.micro_batch[own[2]], cells.micro_batch[own[3]]);
  const Recognition r = recognise(trace);
  CHECK(r.best().name == "1f1b");
  CHECK(r.best().equal_lists == 11);
  REQUIRE(r.divergences.size() == 1);
  const Divergence& d = r.divergences[0];
  CHECK(d.stage == 1);
  CHECK(d.step == 1);
  CHECK(d.position == 2);
  CHECK(d.expected == "F2");
  CHECK(d.found == "B0");
  CHECK(d.is_order);
  CHECK(d.sentence.en == "warms up with 2 forwards instead of 3: B0 comes before F2 (position 2)");
  std::vector<Finding> findings;
  add_late(trace, theory_of(trace), 1, findings);
  CHECK(findings.empty());
}

TEST_CASE("recognise: a first forward that waits for nothing") {
  Trace trace = simulated("1f1b", 4, 8, 3);
  std::vector<Finding> findings;
  const auto add_all = [&] {
    const TheoryRun theory = theory_of(trace);
    add_undelayed(trace, theory, findings);
    add_late(trace, theory, 1, findings);
  };
  add_all();
  CHECK(findings.empty());
  // From stage 1 on everything one forward later, as when receives are posted late (zero-bubble issue 73).
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (trace.cells.part[i] >= 1) {
      trace.cells.start_ns[i] += 10'000'000;
      trace.cells.end_ns[i] += 10'000'000;
    }
  add_all();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].id == "schedule.late_start");
  CHECK(findings[0].title.en == "Stage 1's F0 starts only after stage 0's F1");
  // If machines' clocks are not aligned there is no conclusion: it may be the clock.
  trace.clock = ClockState::kUnaligned;
  trace.parts[0].machine = 0;
  trace.parts[1].machine = 1;
  findings.clear();
  add_all();
  CHECK(findings.empty());
}

TEST_CASE("recognise: the edit distance equals the textbook's") {
  std::mt19937 random(3);
  const auto pick = [&](int min, int max) { return std::uniform_int_distribution<int>(min, max)(random); };
  for (int round = 0; round < 300; ++round) {
    std::vector<WorkToken> a(static_cast<size_t>(pick(0, 40))), b;
    for (WorkToken& t : a) t.micro_batch = pick(0, 5);
    b = a;
    for (int edits = pick(0, 12); edits > 0 && !b.empty(); --edits) {
      const auto at = b.begin() + pick(0, static_cast<int>(b.size()) - 1);
      if (pick(0, 2) == 0) b.erase(at);
      else if (pick(0, 1) == 0) b.insert(at, WorkToken{pick(0, 5)});
      else at->micro_batch = pick(0, 5);
    }
    std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i)
      for (size_t j = 0; j <= b.size(); ++j)
        table[i][j] = i == 0   ? j
                      : j == 0 ? i
                               : std::min({table[i - 1][j] + 1, table[i][j - 1] + 1,
                                           table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
    CHECK(edit_distance(a, b, same_work) == table[a.size()][b.size()]);
  }
  // Beyond what is exact it is a bound, and never less than what is.
  const std::vector<WorkToken> zeros(5000, WorkToken{0}), ones(5000, WorkToken{1}), none;
  CHECK(edit_distance(zeros, ones, same_work) == 5000);
  CHECK(edit_distance(zeros, none, same_work) == 5000);
  CHECK(edit_distance(zeros, std::vector<WorkToken>(4900, WorkToken{0}), same_work) == 100);
}

TEST_CASE("recognise: runs that torch itself recorded") {
  const std::string folder = source_dir() + "/tests/torch/recorded/pipelines/";
  for (const auto& [run, name, chunks] :
       {std::tuple("1f1b", "1f1b", 1), std::tuple("1f1b-shapes", "1f1b", 1), std::tuple("1f1b-stacks", "1f1b", 1),
        std::tuple("1f1b-two-replicas", "1f1b", 1), std::tuple("gpipe", "fthenb", 1),
        std::tuple("interleaved", "vpp", 2), std::tuple("interleaved-shapes", "vpp", 2),
        std::tuple("interleaved-zb", "interleaved-zb", 2), std::tuple("looped-bfs", "bfs", 2),
        std::tuple("zbv", "zb-v", 2), std::tuple("zbv-shapes", "zb-v", 2), std::tuple("dualpipe-v", "dualpipe-v", 2)}) {
    CAPTURE(std::string(run));
    const Result<Trace> trace = open_trace({folder + run}, {});
    REQUIRE(trace);
    const Recognition r = recognise(*trace);
    REQUIRE(!r.candidates.empty());
    CHECK_MESSAGE(r.best().name == name, said(r));
    CHECK(r.best().sizes.chunks == chunks);
    CHECK(r.best().equal_lists == r.lists);
  }
}

TEST_CASE("recognise: real runs") {
  struct Real {
    const char* file;
    const char* name;
    int64_t lists;
  };
  for (const Real& real : std::initializer_list<Real>{{"pipeline_ops/bytedance/timeline-ST.json.gz", "1f1b", 256},
                                                      {"pipeline_ops/bytedance/trace-ST.csv.gz", "1f1b", 256},
                                                      {"pipeline_ops/bytedance/timeline-SE.json.gz", "1f1b", 2880},
                                                      {"pipeline_ops/bytedance/trace-SE.csv.gz", "1f1b", 2752},
                                                      {"pipeline_ops/primus_pp8", "1f1b", 160}}) {
    if (shared_data(real.file).empty()) continue;
    CAPTURE(std::string(real.file));
    const Recognition r = of_file(real.file);
    REQUIRE(!r.candidates.empty());
    CHECK(r.best().name == real.name);
    CHECK(r.lists == real.lists);
    CHECK(r.best().equal_lists == r.lists);
  }
  if (shared_data("pipeline_ops/megatronapp/dpp-aggregated.json.gz").empty()) return;
  const Recognition r = of_file("pipeline_ops/megatronapp/dpp-aggregated.json.gz");
  CHECK(r.recognised);
  CHECK(r.best().name == "bfs-unreversed");
  CHECK(r.best().equal_lists == 60);  // its last stage begins its backwards early
  REQUIRE(!r.divergences.empty());
  CHECK(r.divergences[0].stage == 3);
  CHECK(r.candidates[1].score < r.best().score);
}

namespace {

// As labels that say nothing of their number: 100, 107, 114 …
void relabel(Trace& trace) {
  for (int32_t& label : trace.cells.micro_batch)
    if (label != kUnknown) label = 100 + 7 * label;
}

void swap_forwards(Trace& trace, int32_t step, int32_t stage, int32_t a, int32_t b) {
  Cells& cells = trace.cells;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells.step[i] != step || trace.parts[cells.part[i]].stage != stage || cells.kind[i] != CellKind::kForward)
      continue;
    if (cells.micro_batch[i] == a) cells.micro_batch[i] = b;
    else if (cells.micro_batch[i] == b) cells.micro_batch[i] = a;
  }
}

}  // namespace

TEST_CASE("recognise: cells are named by the trace's own labels") {
  Trace trace = simulated("1f1b", 4, 8, 3);
  relabel(trace);
  const Recognition clean = recognise(trace);
  CHECK(clean.best().equal_lists == clean.lists);
  CHECK(labels_text(clean).find("100 to 149") != std::string::npos);
  CHECK(micro_batches_per_step(trace) == 8);
  swap_forwards(trace, 1, 2, 128, 135);
  const Recognition r = recognise(trace);
  REQUIRE(r.divergences.size() == 1);
  CHECK(r.divergences[0].expected == "F128");
  CHECK(r.divergences[0].found == "F135");
  CHECK(r.divergences[0].sentence.en.find("runs F135 before F128") != std::string::npos);
  CHECK(r.divergences[0].is_order);
  CHECK(labels_text(recognise(simulated("1f1b", 4, 8, 3))).empty());
}

TEST_CASE("recognise: a micro-batch that one step lacks everywhere is missing, not another order") {
  Trace trace = simulated("1f1b", 4, 8, 3);
  Cells kept;
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (trace.cells.step[i] != 1 || trace.cells.micro_batch[i] != 5) kept.add(trace.cells.at(i));
  trace.cells = Cells(kept);
  trace.cells.sort();
  const Recognition r = recognise(trace);
  CHECK(r.best().name == "1f1b");
  REQUIRE(r.divergences.size() == 4);
  for (const Divergence& d : r.divergences) {
    CHECK_FALSE(d.is_order);
    CHECK(d.sentence.en.find("is missing F5") == 0);
  }
}

TEST_CASE("recognise: a second schedule that is nearly as near is said, one that differs by W is not") {
  Trace trace = simulated("1f1b", 4, 8, 3);
  swap_forwards(trace, 1, 2, 4, 5);
  const Recognition r = recognise(trace);
  REQUIRE(r.best().score < 1);
  CHECK(runner_up_text(r).empty());
  Recognition tie = r;
  tie.candidates[1].order_score = tie.best().order_score;
  CHECK(runner_up_text(tie).find(tie.candidates[1].name) == 0);
}

TEST_CASE("findings: one hiccup makes no slow rank, slow cells do") {
  const auto has_slow_rank = [](const Trace& trace) {
    const Findings found = reported_findings(trace);
    return std::any_of(found.list.begin(), found.list.end(), [](const Finding& f) { return f.id == "rank.slow"; });
  };
  Trace hiccup = simulated("1f1b", 2, 4, 2, 0, 1, 2), slow = simulated("1f1b", 2, 4, 2, 0, 1, 2);
  for (size_t i = 0; i < hiccup.cells.size(); ++i)
    if (hiccup.cells.part[i] == 0 && hiccup.cells.step[i] == 1 && hiccup.cells.micro_batch[i] == 3 &&
        hiccup.cells.kind[i] == CellKind::kBackward)
      hiccup.cells.end_ns[i] += 50 * hiccup.cells.dur_ns(i);
  CHECK_FALSE(has_slow_rank(hiccup));
  for (size_t i = 0; i < slow.cells.size(); ++i)
    if (slow.cells.part[i] == 0) slow.cells.end_ns[i] += slow.cells.dur_ns(i) / 2;
  CHECK(has_slow_rank(slow));
}
