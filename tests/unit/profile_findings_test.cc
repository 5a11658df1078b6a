#include "engine/profile_findings.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

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

}  // namespace

TEST_CASE("profile findings: the span adds up and nothing is found where nothing is lost") {
  const Findings f = profile_findings({}, tables_of({{.compute = 98 * kMs}, {.compute = 97 * kMs}}));
  CHECK(ids(f) == std::vector<std::string>{"none"});
  double sum = 0;
  for (const SpanPart& part : f.headline.parts) sum += part.share;
  CHECK(sum == doctest::Approx(1.0));
  CHECK(f.headline.title_en.find("2.5") != std::string::npos);
}

TEST_CASE("profile findings: the rank with the least time in collectives is late") {
  const RankTimes waits{.compute = 50 * kMs, .exposed_comm = 45 * kMs, .comm = 50 * kMs};
  const RankTimes late{.compute = 92 * kMs, .exposed_comm = 2 * kMs, .comm = 4 * kMs};
  const Findings f = profile_findings({}, tables_of({waits, late, waits, waits}));
  REQUIRE(holds(f, "rank.late"));
  REQUIRE(holds(f, "rank.slow"));
  const auto it = std::find_if(f.list.begin(), f.list.end(), [](const Finding& x) { return x.id == "rank.late"; });
  CHECK(it->title_en == "Rank 1 arrives last at collectives");
  CHECK(it->title_zh.find("rank 1") == 0);
  CHECK(it->weight == doctest::Approx(0.43));  // 45 − 2 ms of 100 ms, and not the hidden part of its 46
  CHECK(it->detail_en.find("computes") != std::string::npos);
  CHECK(ids(f)[0] == "rank.late");  // who is late comes before the waiting that follows from it
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
  CHECK_FALSE(holds(profile_findings({}, tables), "rank.late"));  // nobody comes last in half of them
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
  CHECK(f.list[0].title_en == "Devices wait for the host");
  CHECK(f.list[0].value == "35.0\u202f%");  // the host's part of the bar, not all idle time
  CHECK(f.list[0].detail_en.find("87.5\u202f% of all idle time (40.0") != std::string::npos);
  CHECK(f.headline.parts.size() == 3);
  const Findings none = profile_findings({}, {});
  CHECK(none.list.empty());
  CHECK(none.headline.title_en.starts_with("No device work was recorded"));
  CHECK(none.headline.parts.empty());
}

TEST_CASE("profile findings: every id that is made can be asked for") {
  const auto& known = profile_finding_ids();
  for (const char* id : {"device.idle", "comm.exposed", "rank.late", "rank.slow"})
    CHECK(std::find(known.begin(), known.end(), std::string_view(id)) != known.end());
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
  CHECK(f.headline.title_en.starts_with("26.0\u202fms a step"));
  CHECK(f.headline.lead_en.find("4 steps in 130\u202fms") != std::string::npos);
  tables.back() = step_table({{5 * kMs, 26 * kMs}, {5 * kMs, 52 * kMs}, {48 * kMs, 26 * kMs}, {5 * kMs, 26 * kMs}});
  f = profile_findings({}, tables);
  REQUIRE(holds(f, "step.outlier"));
  const auto it = std::find_if(f.list.begin(), f.list.end(), [](const Finding& x) { return x.id == "step.outlier"; });
  CHECK(it->title_en.starts_with("Step 101 takes 52.0"));
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
  trace.diagnostics.add("kineto.far_apart", Severity::kWarning, "");
  CHECK(profile_findings(trace, tables_of({{}})).headline.lead_en.starts_with("The files lie more than a day apart"));
}

TEST_CASE("notes of several analyses: what two of them saw is one flaw") {
  Diagnostics all, first, second;
  first.add("queue.no_launch", Severity::kWarning, "", {}, 463);
  second.add("queue.no_launch", Severity::kWarning, "", {}, 463);
  second.add("queue.early_start", Severity::kWarning, "", {}, 2);
  merge_notes(all, first);
  merge_notes(all, second);
  CHECK(all.count("queue.no_launch") == 463);
  CHECK(all.count("queue.early_start") == 2);
}
