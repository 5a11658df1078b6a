#include "diagnosis/profile/profile_findings.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "diagnosis/merge_findings.h"
#include "engine/merge_notes.h"

using namespace stageline;

namespace {

using Type = ColumnType;
constexpr int64_t kMs = 1'000'000;

struct RankTimes {
  int64_t span = 100 * kMs, compute = 90 * kMs, exposed_comm = 0, exposed_memory = 0, comm = 0;
};

std::vector<Table> tables_of(const std::vector<RankTimes>& ranks) {
  Table breakdown("temporal-breakdown", "",
                  {{"rank", "", Type::kInteger, ""},
                   {"span_ns", "", Type::kDuration, ""},
                   {"compute_ns", "", Type::kDuration, ""},
                   {"exposed_communication_ns", "", Type::kDuration, ""},
                   {"exposed_memory_ns", "", Type::kDuration, ""},
                   {"idle_ns", "", Type::kDuration, ""}});
  Table overlap("comm-comp-overlap", "",
                {{"rank", "", Type::kInteger, ""},
                 {"communication_ns", "", Type::kDuration, ""},
                 {"overlap_ns", "", Type::kDuration, ""}});
  for (size_t i = 0; i < ranks.size(); ++i) {
    const RankTimes& r = ranks[i];
    const auto rank = static_cast<int64_t>(i);
    breakdown.add_row({rank, r.span, r.compute, r.exposed_comm, r.exposed_memory,
                       r.span - r.compute - r.exposed_comm - r.exposed_memory});
    overlap.add_row({rank, r.comm, r.comm - r.exposed_comm});
  }
  return {breakdown, overlap};
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
  const Findings f = profile_findings({}, tables_of({{.compute = 98 * kMs}, {.compute = 97 * kMs}}));
  CHECK(ids(f) == std::vector<std::string>{"none"});
  double sum = 0;
  for (const SpanPart& part : f.headline.parts) sum += part.share;
  CHECK(sum == doctest::Approx(1.0));
  CHECK(f.headline.title.en.find("2.5") != std::string::npos);
}

TEST_CASE("profile findings: the rank with the least time in collectives is late") {
  const RankTimes waits{.compute = 50 * kMs, .exposed_comm = 45 * kMs, .comm = 50 * kMs};
  const RankTimes late{.compute = 92 * kMs, .exposed_comm = 2 * kMs, .comm = 4 * kMs};
  const Findings f = profile_findings({}, tables_of({waits, late, waits, waits}));
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
  const Findings unknown = profile_findings({}, tables_of({waits, even, waits, waits}));
  CHECK(std::find_if(unknown.list.begin(), unknown.list.end(), [](const Finding& x) {
          return x.id == "rank.late" && x.title.en == "Rank 1 arrives last at collectives";
        }) != unknown.list.end());
  CHECK_FALSE(holds(unknown, "rank.slow"));
}

TEST_CASE("profile findings: of exposed communication only what is no waiting for a rank is told beside that rank") {
  const RankTimes waits{.compute = 50 * kMs, .exposed_comm = 50 * kMs, .comm = 50 * kMs};
  const RankTimes late{.compute = 70 * kMs, .exposed_comm = 30 * kMs, .comm = 30 * kMs};
  const Findings f = profile_findings({}, tables_of({waits, waits, late, waits}));
  REQUIRE(ids(f) == std::vector<std::string>{"rank.slow", "comm.exposed"});
  CHECK(f.list[0].weight == doctest::Approx(0.2));
  CHECK(f.list[1].weight == doctest::Approx(0.3));  // transfer, on every rank
  double sum = 0;
  for (const SpanPart& part : f.headline.parts) sum += part.share;
  CHECK(sum == doctest::Approx(1.0));
}

TEST_CASE("profile findings: matched collectives outweigh the guess") {
  const RankTimes even{.compute = 60 * kMs, .exposed_comm = 30 * kMs, .comm = 40 * kMs};
  std::vector<Table> tables = tables_of({even, even, {.compute = 60 * kMs, .exposed_comm = 5 * kMs, .comm = 10 * kMs}});
  REQUIRE(holds(profile_findings({}, tables), "rank.late"));
  Table matched("potential-stragglers", "",
                {{"rank", "", Type::kInteger, ""},
                 {"collective_count", "", Type::kInteger, ""},
                 {"last_count", "", Type::kInteger, ""},
                 {"caused_wait_ns", "", Type::kDuration, ""}});
  matched.add_row({int64_t{0}, int64_t{10}, int64_t{4}, 3 * kMs});
  matched.add_row({int64_t{2}, int64_t{10}, int64_t{3}, 2 * kMs});
  tables.push_back(matched);
  CHECK_FALSE(holds(profile_findings({}, tables), "rank.late"));  // no rank comes last in half of them
}

TEST_CASE("profile findings: idle time names its cause, and a trace without device work says so") {
  std::vector<Table> tables = tables_of({{.compute = 60 * kMs}});
  Table idle("device-idle", "",
             {{"rank", "", Type::kInteger, ""},
              {"cause", "", Type::kText, ""},
              {"count", "", Type::kInteger, ""},
              {"idle_ns", "", Type::kDuration, ""},
              {"max_ns", "", Type::kDuration, ""}});
  idle.add_row({int64_t{0}, std::string("host_wait"), int64_t{3}, 35 * kMs, 20 * kMs});
  idle.add_row({int64_t{0}, std::string("kernel_wait"), int64_t{900}, 5 * kMs, 20'000});
  tables.push_back(idle);
  const Findings f = profile_findings({}, tables);
  REQUIRE(ids(f) == std::vector<std::string>{"device.idle"});
  CHECK(f.list[0].title.en == "Devices wait for the host");
  CHECK(f.list[0].value == "35.0\u202f%");  // the host's part of the bar, not all idle time
  CHECK(f.list[0].detail.en.find("87.5\u202f% of all idle time (40.0") != std::string::npos);
  CHECK(f.headline.parts.size() == 3);
  const Findings none = profile_findings({}, {});
  CHECK(none.list.empty());
  CHECK(none.headline.title.en.starts_with("No device work was recorded"));
  CHECK(none.headline.parts.empty());
}

namespace {

Table averages_of(int64_t loading_ns, int64_t step_ns) {
  Table table("step-averages", "",
              {{"rank", "", Type::kInteger, ""},
               {"category", "", Type::kText, ""},
               {"time_ns", "", Type::kDuration, ""},
               {"time_share", "", Type::kShare, ""}});
  table.add_row({int64_t{0}, std::string("CPU Exec"), step_ns - loading_ns, 0.5});
  table.add_row({int64_t{0}, std::string("DataLoader"), loading_ns,
                 static_cast<double>(loading_ns) / static_cast<double>(step_ns)});
  table.add_row({int64_t{0}, std::string("Step"), step_ns, 1.0});
  return table;
}

// Makes for every rank: transfer, waiting, unknown.
std::vector<Table> waits_of(const std::vector<std::array<int64_t, 3>>& ranks, int64_t exposed_ns, int64_t step_ns) {
  Table waits("waits", "",
              {{"rank", "", Type::kInteger, ""},
               {"transfer_ns", "", Type::kDuration, ""},
               {"synchronizing_ns", "", Type::kDuration, ""},
               {"unknown_ns", "", Type::kDuration, ""}});
  Table overlap("overlap", "",
                {{"rank", "", Type::kInteger, ""},
                 {"step_ns", "", Type::kDuration, ""},
                 {"communication_ns", "", Type::kDuration, ""}});
  int64_t rank = 0;
  for (const auto& [transfer, waiting, unknown] : ranks) {
    waits.add_row({rank, transfer, waiting, unknown});
    overlap.add_row({rank++, step_ns, exposed_ns});
  }
  return {waits, overlap};
}

// One rank with 60 of 100 ms exposed communication, and what is known of its waiting.
std::string exposed_advice(int64_t wait_ns, int64_t collective_ns, int64_t message_ns) {
  Table ranks("cluster-time-ranks", "",
              {{"exposed_message_ns", "", Type::kDuration, ""},
               {"exposed_collective_ns", "", Type::kDuration, ""},
               {"communication_wait_ns", "", Type::kDuration, ""}});
  ranks.add_row({message_ns, collective_ns, wait_ns});
  std::vector<Table> tables = tables_of({{.compute = 40 * kMs, .exposed_comm = 60 * kMs, .comm = 60 * kMs}});
  tables.push_back(ranks);
  const Findings f = profile_findings({}, tables);
  for (const Finding& x : f.list)
    if (x.id == "comm.exposed") return x.detail.en;
  return "no such finding";
}

Table advice_of(const char* about, double share) {
  Table table("recommendations", "",
              {{"rank", "", Type::kInteger, ""},
               {"recommendation", "", Type::kText, ""},
               {"value_share", "", Type::kShare, ""},
               {"text", "", Type::kText, ""}});
  table.add_row({int64_t{0}, std::string(about), share, std::string("words")});
  return table;
}

}  // namespace

TEST_CASE("profile findings: waiting for input, on the host alone too, from above 5 % on") {
  CHECK_FALSE(holds(profile_findings({}, {averages_of(5 * kMs, 100 * kMs)}), "input.loading"));
  const Findings f = profile_findings({}, {averages_of(6 * kMs, 100 * kMs)});
  REQUIRE(ids(f) == std::vector<std::string>{"input.loading"});
  CHECK(f.list[0].value == "6.0\u202f%");
  CHECK(f.list[0].weight == doctest::Approx(0.06));
  double sum = 0;
  for (const SpanPart& part : f.headline.parts) sum += part.share;
  CHECK(sum == doctest::Approx(1.0));
  CHECK(ids(profile_findings({}, {averages_of(0, 100 * kMs)})) == std::vector<std::string>{"none"});
}

TEST_CASE("profile findings: idle time that is waiting for input is said once") {
  Table idle("device-idle", "",
             {{"rank", "", Type::kInteger, ""},
              {"cause", "", Type::kText, ""},
              {"count", "", Type::kInteger, ""},
              {"idle_ns", "", Type::kDuration, ""},
              {"max_ns", "", Type::kDuration, ""}});
  idle.add_row({int64_t{0}, std::string("host_wait"), int64_t{3}, 40 * kMs, 20 * kMs});
  std::vector<Table> tables = tables_of({{.compute = 60 * kMs}});
  tables.push_back(idle);
  Trace ascend;
  ascend.format = "ascend";
  ascend.device_family = DeviceFamily::kNpu;
  ascend.numbers_messages_per_rank = true;
  CHECK(profile_findings({}, tables).list[0].detail.en.find("CUDA graphs") != std::string::npos);
  CHECK(profile_findings(ascend, tables).list[0].detail.en.find("CUDA") == std::string::npos);
  CHECK(profile_findings(ascend, tables).list[0].detail.en.find("NPU graphs") != std::string::npos);
  tables.push_back(averages_of(38 * kMs, 100 * kMs));
  CHECK(ids(profile_findings({}, tables)) == std::vector<std::string>{"input.loading"});
  tables.back() = averages_of(10 * kMs, 100 * kMs);
  const Findings f = profile_findings({}, tables);
  REQUIRE(ids(f) == std::vector<std::string>{"device.idle", "input.loading"});
  CHECK(f.list[0].weight == doctest::Approx(0.3));
  CHECK(f.list[0].detail.en.find("DataLoader (10.0") != std::string::npos);
}

TEST_CASE("profile findings: collectives that mostly wait name the rank that waits least, or nobody") {
  const auto with = [](const std::vector<std::array<int64_t, 3>>& ranks, int64_t exposed) {
    return profile_findings({}, waits_of(ranks, exposed, 100 * kMs));
  };
  const Findings late =
      with({{{10 * kMs, 30 * kMs, 0}}, {{10 * kMs, 2 * kMs, 0}}, {{10 * kMs, 28 * kMs, 0}}}, 30 * kMs);
  REQUIRE(holds(late, "comm.waiting"));
  const auto it =
      std::find_if(late.list.begin(), late.list.end(), [](const Finding& x) { return x.id == "comm.waiting"; });
  CHECK(it->value == "20.0\u202f%");  // of the step, as the bar
  CHECK(it->detail.en.find("66.7\u202f% of collective time") != std::string::npos);
  CHECK(it->weight == doctest::Approx(0.2));  // 60 of 300 ms; the exposed part is longer
  CHECK(it->detail.en.find("Rank 1 waits least") != std::string::npos);
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
  std::vector<Table> tables = waits_of({{{10 * kMs, 30 * kMs, 0}}, {{10 * kMs, 29 * kMs, 0}}}, 30 * kMs, 100 * kMs);
  REQUIRE(holds(profile_findings({}, tables), "comm.waiting"));
  Table waits("waits", "",
              {{"rank", "", Type::kInteger, ""},
               {"transfer_ns", "", Type::kDuration, ""},
               {"synchronizing_ns", "", Type::kDuration, ""},
               {"unknown_ns", "", Type::kDuration, ""},
               {"message_transfer_ns", "", Type::kDuration, ""},
               {"message_wait_ns", "", Type::kDuration, ""}});
  for (int64_t rank = 0; rank < 2; ++rank) waits.add_row({rank, 10 * kMs, 30 * kMs, int64_t{0}, 2 * kMs, 28 * kMs});
  tables[0] = waits;
  CHECK_FALSE(holds(profile_findings({}, tables), "comm.waiting"));
}

TEST_CASE("profile findings: exposed communication that mostly waits is not to be sent earlier") {
  CHECK(exposed_advice(5 * kMs, 60 * kMs, 0).find("Start communication earlier") != std::string::npos);
  CHECK(exposed_advice(kNullInteger, 60 * kMs, 0).find("Start communication earlier") != std::string::npos);
  CHECK(exposed_advice(55 * kMs, 60 * kMs, 0).find("balance ") != std::string::npos);
  CHECK(exposed_advice(0, 10 * kMs, 50 * kMs).find("balance ") != std::string::npos);
}

TEST_CASE("profile findings: what the plugin recommended, with thresholds of our own") {
  const auto with = [](const char* about, double share) {
    std::vector<Table> tables = tables_of({{.compute = 98 * kMs}});
    tables.push_back(advice_of(about, share));
    return ids(profile_findings({}, tables));
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
Table step_table(const std::vector<std::pair<int64_t, int64_t>>& lengths) {
  Table table("profiler-steps", "",
              {{"rank", "", Type::kInteger, ""},
               {"step", "", Type::kInteger, ""},
               {"start_ns", "", Type::kTime, ""},
               {"dur_ns", "", Type::kDuration, ""},
               {"device_ns", "", Type::kDuration, ""}});
  int64_t start = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto [host, device] = lengths[i];
    table.add_row({int64_t{0}, static_cast<int64_t>(100 + i), start, host, device});
    start += host;
  }
  return table;
}
}  // namespace

TEST_CASE("profile findings: steps are as long as the devices take, not as the host blocks") {
  std::vector<Table> tables = tables_of({{.span = 130 * kMs, .compute = 128 * kMs}});
  tables.push_back(step_table({{5 * kMs, 26 * kMs}, {5 * kMs, 26 * kMs}, {48 * kMs, 26 * kMs}, {5 * kMs, 27 * kMs}}));
  Findings f = profile_findings({}, tables);
  CHECK_FALSE(holds(f, "step.outlier"));
  CHECK(f.headline.title.en.starts_with("Steps take 26.2\u202fms on average"));
  CHECK(f.headline.lead.en.find("4 steps in 130\u202fms") != std::string::npos);
  tables.back() = step_table({{5 * kMs, 26 * kMs}, {5 * kMs, 52 * kMs}, {48 * kMs, 26 * kMs}, {5 * kMs, 26 * kMs}});
  f = profile_findings({}, tables);
  CHECK(f.headline.title.en.starts_with("Steps take 32.5\u202fms on average"));  // of all steps, the slow one too
  REQUIRE(holds(f, "step.outlier"));
  const auto it = std::find_if(f.list.begin(), f.list.end(), [](const Finding& x) { return x.id == "step.outlier"; });
  CHECK(it->title.en.starts_with("Step 101 takes 52.0"));
  // Without device work the host's rows are all there is.
  tables.back() =
      step_table({{5 * kMs, kNullInteger}, {5 * kMs, kNullInteger}, {48 * kMs, kNullInteger}, {5 * kMs, kNullInteger}});
  CHECK(holds(profile_findings({}, tables), "step.outlier"));
}

TEST_CASE("profile findings: waiting for a late rank is a share of the spans of those who wait") {
  const RankTimes waits{.compute = 35 * kMs, .exposed_comm = 60 * kMs, .comm = 60 * kMs};
  const RankTimes late{.span = 40 * kMs, .compute = 38 * kMs, .exposed_comm = 1 * kMs, .comm = 1 * kMs};
  const Findings f = profile_findings({}, tables_of({waits, late}));
  REQUIRE(holds(f, "rank.late"));
  CHECK(f.list[0].weight == doctest::Approx(0.59));
}

TEST_CASE("profile findings: files days apart are said in the headline") {
  Trace trace;
  trace.diagnostics.add({"kineto.far_apart", Severity::kWarning, {}, 1, {}});
  CHECK(profile_findings(trace, tables_of({{}})).headline.lead.en.starts_with("The files are more than a day apart"));
}

TEST_CASE("profile findings: many launches of short work cost nothing where devices are never idle") {
  const auto short_work = [](int64_t idle) {
    std::vector<Table> tables = tables_of({{.span = 100 * kMs, .compute = 100 * kMs - idle}});
    Table outliers("outliers", "",
                   {{"rank", "", ColumnType::kInteger, ""},
                    {"events", "", ColumnType::kInteger, ""},
                    {"call_ns", "", ColumnType::kInteger, ""},
                    {"short_gpu_kernels", "", ColumnType::kInteger, ""}});
    outliers.add_row({int64_t{0}, int64_t{1000}, 90 * kMs, int64_t{700}});
    std::erase_if(tables, [](const Table& table) { return table.name() == "outliers"; });
    tables.push_back(std::move(outliers));
    return tables;
  };
  CHECK(holds(profile_findings({}, short_work(40 * kMs)), "launch.bound"));
  CHECK_FALSE(holds(profile_findings({}, short_work(kMs)), "launch.bound"));
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
