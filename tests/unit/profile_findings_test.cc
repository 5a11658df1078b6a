#include "diagnosis/profile/profile_findings.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "diagnosis/explain.h"
#include "engine/engine.h"

using namespace stageline;

namespace {

constexpr int64_t kMs = 1'000'000;

struct RankTimes {
  int64_t span = 100 * kMs, compute = 90 * kMs, exposed_comm = 0, exposed_memory = 0, comm = 0;
};

ProfileSums sums_of(const std::vector<RankTimes>& ranks) {
  ProfileSums sums;
  for (const RankTimes& r : ranks) {
    DeviceSums& s = sums.ranks.emplace_back();
    s.rank = s.time.rank = static_cast<int32_t>(sums.ranks.size() - 1);
    s.time.span_ns = r.span;
    s.time.compute_ns = r.compute;
    s.time.communication_ns = r.comm;
    s.time.overlap_ns = r.comm - r.exposed_comm;
    s.time.idle_ns = r.span - r.compute - r.exposed_comm - r.exposed_memory;
  }
  return sums;
}

std::vector<std::string> ids(const Findings& findings) {
  std::vector<std::string> out;
  for (const Finding& finding : findings.list) out.push_back(finding.id);
  return out;
}
bool holds(const Findings& findings, std::string_view id) {
  const auto all = ids(findings);
  return std::find(all.begin(), all.end(), id) != all.end();
}

double part_of(const Findings& findings, std::string_view id) {
  for (const SpanPart& part : findings.headline.parts)
    if (part.id == id) return part.share;
  return 0;
}

}  // namespace

TEST_CASE("profile findings: the span adds up and nothing is found where nothing is lost") {
  const Findings f = profile_findings({}, sums_of({{.compute = 98 * kMs}, {.compute = 97 * kMs}}));
  CHECK(ids(f) == std::vector<std::string>{"none"});
  double sum = 0;
  for (const SpanPart& part : f.headline.parts) sum += part.share;
  CHECK(sum == doctest::Approx(1.0));
  CHECK(f.headline.title.en.find("2.5") != std::string::npos);
}

TEST_CASE("profile findings: the rank with the least time in collectives is late") {
  const RankTimes waits{.compute = 50 * kMs, .exposed_comm = 45 * kMs, .comm = 50 * kMs};
  const RankTimes late{.compute = 92 * kMs, .exposed_comm = 2 * kMs, .comm = 4 * kMs};
  const Findings f = profile_findings({}, sums_of({waits, late, waits, waits}));
  // It is late because it computes longer: one finding, and the others' waiting does not count as another loss.
  REQUIRE(ids(f).front() == "rank.slow");
  CHECK_FALSE(holds(f, "rank.late"));
  CHECK_FALSE(holds(f, "comm.exposed"));
  CHECK(f.list[0].title.en == "Rank 1 computes longer than the others, which wait for it");
  CHECK(f.list[0].title.zh.find("rank 1") == 0);
  CHECK(f.list[0].weight == doctest::Approx(0.43));  // 45 − 2 ms of 100 ms, and not the hidden part of its 46
  CHECK(f.list[0].detail.en.find("spends the least time in it") != std::string::npos);
  CHECK(part_of(f, "comm-wait") == doctest::Approx(3 * 0.43 / 4));
  CHECK(part_of(f, "comm") == doctest::Approx((3 * 0.45 + 0.02) / 4 - 3 * 0.43 / 4));
  // The same waiting for a rank that computes as long as they do: the reason is not known.
  const RankTimes even{.compute = 50 * kMs, .exposed_comm = 2 * kMs, .comm = 4 * kMs};
  const Findings unknown = profile_findings({}, sums_of({waits, even, waits, waits}));
  CHECK(std::find_if(unknown.list.begin(), unknown.list.end(), [](const Finding& x) {
          return x.id == "rank.late" && x.title.en == "Rank 1 arrives last at collectives";
        }) != unknown.list.end());
  CHECK_FALSE(holds(unknown, "rank.slow"));
}

TEST_CASE("profile findings: of exposed communication only what is no waiting for a rank is told beside that rank") {
  const RankTimes waits{.compute = 50 * kMs, .exposed_comm = 50 * kMs, .comm = 50 * kMs};
  const RankTimes late{.compute = 70 * kMs, .exposed_comm = 30 * kMs, .comm = 30 * kMs};
  const Findings f = profile_findings({}, sums_of({waits, waits, late, waits}));
  REQUIRE(ids(f) == std::vector<std::string>{"rank.slow", "comm.exposed"});
  CHECK(f.list[0].weight == doctest::Approx(0.2));
  CHECK(f.list[1].weight == doctest::Approx(0.3));  // transfer, on every rank
  double sum = 0;
  for (const SpanPart& part : f.headline.parts) sum += part.share;
  CHECK(sum == doctest::Approx(1.0));
}

TEST_CASE("profile findings: matched collectives outweigh the guess") {
  const RankTimes even{.compute = 60 * kMs, .exposed_comm = 30 * kMs, .comm = 40 * kMs};
  ProfileSums sums = sums_of({even, even, {.compute = 60 * kMs, .exposed_comm = 5 * kMs, .comm = 10 * kMs}});
  REQUIRE(holds(profile_findings({}, sums), "rank.late"));
  sums.ranks[0].collectives = {.collectives = 10, .last = 4, .caused_ns = 3 * kMs};
  sums.ranks[2].collectives = {.collectives = 10, .last = 3, .caused_ns = 2 * kMs};
  CHECK_FALSE(holds(profile_findings({}, sums), "rank.late"));  // no rank comes last in half of them
}

TEST_CASE("profile findings: idle time without launches has no owner, and a trace without device work says so") {
  const Findings f = profile_findings({}, sums_of({{.compute = 60 * kMs}}));
  REQUIRE(ids(f) == std::vector<std::string>{"device.idle"});
  CHECK(f.list[0].value == "40.0\u202f%");
  CHECK(part_of(f, "idle") == doctest::Approx(0.4));
  const Findings none = profile_findings({}, {});
  CHECK(none.list.empty());
  CHECK(none.headline.title.en.starts_with("No device work was recorded"));
  CHECK(none.headline.parts.empty());
}

namespace {

StepCosts step_of(int64_t loading_ns, int64_t step_ns) {
  StepCosts step{step_ns, {}};
  step.costs[TbRole::kCpuExec] = step_ns - loading_ns;
  step.costs[TbRole::kDataLoader] = loading_ns;
  return step;
}
ProfileSums host_alone(int64_t loading_ns, int64_t step_ns) {
  ProfileSums sums;
  sums.ranks.emplace_back().step_costs = step_of(loading_ns, step_ns);
  return sums;
}

// Makes for every rank: transfer, waiting, unknown.
Trace on_one_clock() {
  Trace trace;
  trace.clock = ClockState::kShared;
  return trace;
}

ProfileSums waits_of(const std::vector<std::array<int64_t, 3>>& ranks, int64_t exposed_ns, int64_t step_ns) {
  ProfileSums sums;
  sums.communicates = true;
  for (const auto& [transfer, waiting, unknown] : ranks) {
    TbMeanWork& work = sums.ranks.emplace_back().work.emplace();
    sums.ranks.back().rank = static_cast<int32_t>(sums.ranks.size() - 1);
    work.step_ns = step_ns;
    work.overlap.communication_ns = exposed_ns;
    work.wait = {.transfer_ns = transfer,
                 .synchronizing_ns = waiting,
                 .unknown_ns = unknown,
                 .exposed_wait_ns = std::min(waiting, exposed_ns)};
  }
  return sums;
}

// One rank with 60 of 100 ms exposed communication, and what is known of its waiting.
std::string exposed_advice(std::optional<int64_t> wait_ns, int64_t collective_ns, int64_t message_ns) {
  ProfileSums sums = sums_of({{.compute = 40 * kMs, .exposed_comm = 60 * kMs, .comm = 60 * kMs}});
  sums.ranks[0].cluster = {.exposed_message_ns = message_ns,
                           .exposed_collective_ns = collective_ns,
                           .waits_known = wait_ns.has_value(),
                           .wait_ns = wait_ns.value_or(0)};
  const Findings f = profile_findings({}, sums);
  for (const Finding& x : f.list)
    if (x.id == "comm.exposed") return x.detail.en;
  return "no such finding";
}

}  // namespace

TEST_CASE("profile findings: waiting for input, on the host alone too, from above 5 % on") {
  CHECK_FALSE(holds(profile_findings({}, host_alone(5 * kMs, 100 * kMs)), "input.loading"));
  const Findings f = profile_findings({}, host_alone(6 * kMs, 100 * kMs));
  REQUIRE(ids(f) == std::vector<std::string>{"input.loading"});
  CHECK(f.list[0].value == "6.0\u202f%");
  CHECK(f.list[0].weight == doctest::Approx(0.06));
  double sum = 0;
  for (const SpanPart& part : f.headline.parts) sum += part.share;
  CHECK(sum == doctest::Approx(1.0));
  CHECK(ids(profile_findings({}, host_alone(0, 100 * kMs))) == std::vector<std::string>{"none"});
}

TEST_CASE("profile findings: collectives that mostly wait name the rank that waits least, or nobody") {
  const auto with = [](const std::vector<std::array<int64_t, 3>>& ranks, int64_t exposed) {
    return profile_findings(on_one_clock(), waits_of(ranks, exposed, 100 * kMs));
  };
  const Findings late =
      with({{{10 * kMs, 30 * kMs, 0}}, {{10 * kMs, 2 * kMs, 0}}, {{10 * kMs, 28 * kMs, 0}}}, 30 * kMs);
  REQUIRE(holds(late, "rank.late"));
  const auto it =
      std::find_if(late.list.begin(), late.list.end(), [](const Finding& x) { return x.id == "rank.late"; });
  CHECK(it->value == "29.0\u202f%");  // of the step: what each of the others waits
  CHECK(it->detail.en.find("66.7\u202f% of collective time") != std::string::npos);
  CHECK(it->weight == doctest::Approx(0.29));
  CHECK(it->rank == 1);
  const Findings nobody = with({{{10 * kMs, 30 * kMs, 0}}, {{10 * kMs, 29 * kMs, 0}}}, 30 * kMs);
  REQUIRE(holds(nobody, "comm.waiting"));
  // Mostly transfer, mostly unknown, hidden under computation, one rank alone: nothing to say.
  CHECK_FALSE(holds(with({{{10 * kMs, 5 * kMs, 0}}, {{10 * kMs, 4 * kMs, 0}}}, 15 * kMs), "comm.waiting"));
  CHECK_FALSE(
      holds(with({{{10 * kMs, 30 * kMs, 90 * kMs}}, {{10 * kMs, 30 * kMs, 90 * kMs}}}, 30 * kMs), "comm.waiting"));
  CHECK_FALSE(holds(with({{{10 * kMs, 30 * kMs, 0}}, {{10 * kMs, 30 * kMs, 0}}}, kMs), "comm.waiting"));
  CHECK_FALSE(holds(with({{{10 * kMs, 30 * kMs, 0}}}, 30 * kMs), "comm.waiting"));
}

TEST_CASE("profile findings: waiting of sends and receives is a pipeline's, not the collectives'") {
  ProfileSums sums = waits_of({{{10 * kMs, 30 * kMs, 0}}, {{10 * kMs, 29 * kMs, 0}}}, 30 * kMs, 100 * kMs);
  REQUIRE(holds(profile_findings(on_one_clock(), sums), "comm.waiting"));
  for (DeviceSums& rank : sums.ranks) {
    rank.work->wait.message_transfer_ns = 2 * kMs;
    rank.work->wait.message_wait_ns = 28 * kMs;
    rank.work->wait.exposed_wait_ns -= 28 * kMs;
  }
  CHECK_FALSE(holds(profile_findings(on_one_clock(), sums), "comm.waiting"));
}

TEST_CASE("profile findings: exposed communication that mostly waits is not to be sent earlier") {
  CHECK(exposed_advice(5 * kMs, 60 * kMs, 0).find("Start communication earlier") != std::string::npos);
  CHECK(exposed_advice(std::nullopt, 60 * kMs, 0).find("Start communication earlier") != std::string::npos);
  CHECK(exposed_advice(55 * kMs, 60 * kMs, 0).find("balance ") != std::string::npos);
  CHECK(exposed_advice(0, 10 * kMs, 50 * kMs).find("balance ") != std::string::npos);
}

TEST_CASE("profile findings: what the plugin recommended, with thresholds of our own") {
  const auto with = [](const char* about, double share) {
    ProfileSums sums = sums_of({{.compute = 98 * kMs}});
    sums.ranks[0].advice.push_back({about, share, {}});
    return ids(profile_findings({}, sums));
  };
  CHECK(with("tensor-cores", 0.49) == std::vector<std::string>{"none"});
  CHECK(with("tensor-cores", 0.6) == std::vector<std::string>{"tensor_cores.unused"});
  CHECK(with("memory-full", 0.93) == std::vector<std::string>{"memory.full"});
  CHECK(with("data-parallel", NAN) == std::vector<std::string>{"data_parallel.one_process"});
  CHECK(with("low-utilization", 0.2) == std::vector<std::string>{"none"});  // device.idle has it, with its cause
}

TEST_CASE("merged findings: idle devices of a pipeline are its waiting, and ranks are compared by stage") {
  const auto finding = [](const char* id, double weight) {
    Finding x;
    x.id = id;
    x.weight = weight;
    return x;
  };
  const auto pipeline = [&](double bubble) {
    Findings f;
    f.headline.title.en = "pipeline";
    f.headline.parts = {{"compute", "", "", 1 - bubble}, {"bubble", "", "", bubble}};
    f.list = {finding("stage.slow", 0.1), finding("bubble", bubble)};
    return f;
  };
  Findings devices;
  devices.headline.parts = {{"compute", "", "", 0.5}, {"idle-host", "", "", 0.3}, {"comm", "", "", 0.2}};
  devices.list = {finding("rank.slow", 0.4), finding("device.idle", 0.3), finding("comm.exposed", 0.2),
                  finding("tensor_cores.unused", 0.05)};
  const Findings explained = merge_findings(pipeline(0.4), devices);
  CHECK(explained.headline.title.en == "pipeline");
  CHECK(explained.headline.device_parts.size() == 3);  // in addition to the pipeline's own
  CHECK(ids(explained) == std::vector<std::string>{"stage.slow", "bubble", "tensor_cores.unused"});
  CHECK(explained.list[1].detail.en.find("are idle 30.0\u202f% and spend") != std::string::npos);
  const Findings apart = merge_findings(pipeline(0.06), devices);
  CHECK(ids(apart) ==
        std::vector<std::string>{"stage.slow", "device.idle", "comm.exposed", "bubble", "tensor_cores.unused"});
}

namespace {
// Steps of one rank: length of the host's row and of the device.
std::vector<DeviceStep> steps_of(const std::vector<std::pair<int64_t, std::optional<int64_t>>>& lengths) {
  std::vector<DeviceStep> steps;
  int64_t start = 0;
  for (const auto& [host, device] : lengths) {
    DeviceStep& step = steps.emplace_back();
    step.number = 99 + static_cast<int64_t>(steps.size());
    step.host_start_ns = start;
    step.host_ns = host;
    step.any = device.has_value();
    step.length_ns = device.value_or(0);
    start += host;
  }
  return steps;
}
}  // namespace

TEST_CASE("profile findings: steps are as long as the devices take, not as the host blocks") {
  ProfileSums sums = sums_of({{.span = 130 * kMs, .compute = 128 * kMs}});
  sums.ranks[0].steps = steps_of({{5 * kMs, 26 * kMs}, {5 * kMs, 26 * kMs}, {48 * kMs, 26 * kMs}, {5 * kMs, 27 * kMs}});
  Findings f = profile_findings({}, sums);
  CHECK_FALSE(holds(f, "step.outlier"));
  CHECK(f.headline.title.en.starts_with("Steps take 26.2\u202fms on average"));
  CHECK(f.headline.lead.en.find("4 steps in 130\u202fms") != std::string::npos);
  sums.ranks[0].steps = steps_of({{5 * kMs, 26 * kMs}, {5 * kMs, 52 * kMs}, {48 * kMs, 26 * kMs}, {5 * kMs, 26 * kMs}});
  f = profile_findings({}, sums);
  CHECK(f.headline.title.en.starts_with("Steps take 32.5\u202fms on average"));  // of all steps, the slow one too
  REQUIRE(holds(f, "step.outlier"));
  const auto it = std::find_if(f.list.begin(), f.list.end(), [](const Finding& x) { return x.id == "step.outlier"; });
  CHECK(it->title.en.starts_with("Step 101 takes 52.0"));
  // Without device work the host's rows are all there is.
  sums.ranks[0].steps = steps_of({{5 * kMs, {}}, {5 * kMs, {}}, {48 * kMs, {}}, {5 * kMs, {}}});
  CHECK(holds(profile_findings({}, sums), "step.outlier"));
}

TEST_CASE("profile findings: waiting for a late rank is a share of the spans of those who wait") {
  const RankTimes waits{.compute = 35 * kMs, .exposed_comm = 60 * kMs, .comm = 60 * kMs};
  const RankTimes late{.span = 40 * kMs, .compute = 38 * kMs, .exposed_comm = 1 * kMs, .comm = 1 * kMs};
  const Findings f = profile_findings({}, sums_of({waits, late}));
  REQUIRE(holds(f, "rank.late"));
  CHECK(f.list[0].weight == doctest::Approx(0.59));
}

TEST_CASE("profile findings: files days apart are said in the headline") {
  Trace trace;
  trace.diagnostics.add({"kineto.far_apart", Severity::kWarning, {}, 1, {}});
  CHECK(profile_findings(trace, sums_of({RankTimes{}}))
            .headline.lead.en.starts_with("The files are more than a day apart"));
}

TEST_CASE("notes of several analyses: what two of them saw is one flaw") {
  Diagnostics all, first, second;
  first.add({"queue.no_launch", Severity::kWarning, {"work without a launch", ""}, 463, {}});
  first.add({"waterfall.part_of_run", Severity::kWarning, {"only stage 0 of 2 was read", ""}, 1, {}});
  second.add({"queue.no_launch", Severity::kWarning, {"work without a launch", ""}, 463, {}});
  second.add({"queue.early_start", Severity::kWarning, {"work before its launch", ""}, 2, {}});
  second.add({"schedule.part_of_run", Severity::kWarning, {"only stage 0 of 2 was read", ""}, 1, {}});
  merge_notes(all, first);
  merge_notes(all, second);
  CHECK(all.count("queue.no_launch") == 463);
  CHECK(all.count("queue.early_start") == 2);
  // In the same words, under a name of each analysis.
  CHECK(all.count("waterfall.part_of_run") == 1);
  CHECK(all.count("schedule.part_of_run") == 0);
}
