#include <doctest/doctest.h>

#include <string>

#include "readers/paddle_log/scan.h"

using namespace stageline;

namespace {

std::string line(const std::string& type, int micro_batch, const std::string& start, const std::string& end) {
  const std::string number = std::to_string(micro_batch);
  return "I1020 09:15:07.512326 22317 standalone_executor.cc:217] Profiler Info: Job (" + number + "), type = " + type +
         ", micro_batch_id = " + number + ", job_start_time = " + start + ", job_end_time = " + end + "\n";
}

PaddleLog scan(const std::string& text) {
  PaddleLog log;
  scan_paddle_text(log, text, 0, true);
  return log;
}

}  // namespace

TEST_CASE("times of job lines are exact") {
  const PaddleLog log = scan(line("forward", 0, "1697793307213.760986", "1697793307223.413086"));
  REQUIRE(log.jobs.size() == 1);
  CHECK(log.jobs[0].start_ns == 1697793307213760986);
  CHECK(log.jobs[0].end_ns == 1697793307223413086);
  CHECK(log.jobs[0].start_us == 1697793307213.760986 * 1000);
  CHECK(log.jobs[0].flags == 0);
}

// A machine that lost power leaves blocks of NUL bytes. The expression of Paddle's script takes one for the point;
// digits around it do not make a time.
TEST_CASE("a NUL inside a time is a bad number") {
  const PaddleLog log = scan(line("forward", 0, "1697793307213.760986",
                                  std::string("12\0"
                                              "345678",
                                              9)));
  REQUIRE(log.jobs.size() == 1);
  CHECK((log.jobs[0].flags & kJobBadNumber));
  CHECK(log.bad_number.count == 1);
  CHECK(log.damaged.count == 0);
}

TEST_CASE("a decimal comma is repaired, however many decimals") {
  const PaddleLog log = scan(line("forward", 0, "1697793307213,00" + std::string(90, '9'), "1697793307222,500000"));
  REQUIRE(log.jobs.size() == 1);
  CHECK((log.jobs[0].flags & kJobDecimalComma));
  CHECK(log.jobs[0].start_ns == 1697793307213010000);
  CHECK(log.jobs[0].end_ns == 1697793307222500000);
}

TEST_CASE("times that no clock shows are damaged lines") {
  CHECK(scan(line("forward", 0, "3999999999999.000000", "4000000000000.000000")).jobs.size() == 1);
  for (const char* far :
       {"4000000000000.000001", "9223372036854.775807", "9999999999999.999999", "99999999999999999999.5"}) {
    const PaddleLog log = scan(line("forward", 0, "3999999999999.000000", far));
    CHECK_MESSAGE(log.jobs.empty(), far);
    CHECK(log.damaged.count == 1);
  }
}

TEST_CASE("steps are matched by time up to the largest time") {
  const std::string one = line("forward", 0, "3999999999998.000000", "3999999999999.000000");
  const std::string wide = line("forward", 0, "0.000001", "4000000000000.000000");
  const std::vector<PaddleLog> logs = {scan(wide + one + one), scan(one)};
  std::vector<std::vector<PaddleBurst>> bursts(2);
  std::vector<int32_t> burst_of_job;
  for (size_t r = 0; r < 2; ++r) bursts[r] = cut_bursts(logs[r], burst_of_job);
  Diagnostics diagnostics;
  const auto steps = match_steps(bursts, {"workerlog.0", "workerlog.1"}, diagnostics);
  REQUIRE(steps[1].size() == 1);
  CHECK(steps[1][0] == 1);
  CHECK(diagnostics.count("paddle.lost_steps") == 2);
}

TEST_CASE("chunk numbers are bounded") {
  CHECK(job_type("forward12").chunk == 12);
  CHECK(job_type("forward(chunk3)").chunk == 3);
  CHECK(job_type("forward(chunk99999)").chunk == 0);
  CHECK(job_type("backward_w1_reduce").kind == CellKind::kWeightGrad);
  CHECK(job_type("backward_w1_reduce").chunk == 1);
}
