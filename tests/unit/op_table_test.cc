#include <simdjson.h>

#include <map>

#include "base/input.h"
#include "reader_fixture.h"
#include "shared_data.h"

using namespace stageline;

namespace {

const std::string kHeader = "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n";
const std::string kRow = "0,0,0,1,forward-compute,0.5,0.25,0,0,0,0\n";

}  // namespace

TEST_CASE("op-table reads the published layout") {
  Folder folder;
  const std::string path = folder.add("t.csv", kHeader + kRow +
                                                   "0,0,0,1,backward-compute,1.5,0.25,0,0,0,0\n"
                                                   "0,1,1,1,forward-recv,0.75,0.05,0,-1,-1,-1\n"
                                                   "0,1,1,1,forward-compute,0.8,0.25,0,0,0,1\n"
                                                   "0,1,1,1,grads-reduce-scatter,2,0.1,0,0,-1,-1\n");
  CHECK(sniffed("op-table", {path}) == Match::kCertain);
  const Trace trace = read_with("op-table", {path});
  check_consistent(trace);
  REQUIRE(trace.cells.size() == 5);
  CHECK(trace.parts.size() == 2);
  CHECK(trace.cells.start_ns[0] == 500'000'000);
  CHECK(trace.cells.end_ns[0] == 750'000'000);
  CHECK(trace.cells.micro_batch[2] == 0);  // the one receive before the one forward
  CHECK(trace.cells.kind[4] == CellKind::kCollective);
  CHECK_FALSE(trace.steps_laid_end_to_end);
  CHECK(trace.diagnostics.flaw_count() == 0);
}

TEST_CASE("op-table takes columns by name, in any order and unit") {
  Folder folder;
  for (const char* text :
       {"kind,Stage,start_us,end_us,note\nF0,0,1.5,3.5,hello\nB0,1,4,5,\n",
        "start_ms,dur_us,pp_rank,type\n0.0015,2,0,F0\n0.004,1,1,B0\n",
        "\xef\xbb\xbfoptype,micro_batch,stage,start_ns,duration_ns\r\nforward,0,0,1500,2000\r\nbwd,0.0,1,4000,1000\r\n",
        "\"op\",mb,stage,\"start_s\",dur_s\rF,0,0,1.5e-6,0.000002\rB,0,1,4e-6,1e-6\r"}) {
    CAPTURE(text);
    const std::string path = folder.add("t.csv", text);
    CHECK(sniffed("op-table", {path}) == Match::kCertain);
    const Trace trace = read_with("op-table", {path});
    REQUIRE(trace.cells.size() == 2);
    CHECK(trace.cells.start_ns == std::vector<int64_t>{1500, 4000});
    CHECK(trace.cells.end_ns == std::vector<int64_t>{3500, 5000});
    CHECK(trace.cells.micro_batch == std::vector<int32_t>{0, 0});
    CHECK(trace.parts[1].rank == 1);
    CHECK(trace.diagnostics.count("op_table.ranks_inferred") == 2);
    CHECK(trace.diagnostics.count("op_table.no_steps") == 1);
  }
}

TEST_CASE("op-table says what is missing") {
  Folder folder;
  const std::string path = folder.add("t.csv", "stage,kind,start_s,micro_batch\n0,F,1,0\n");
  CHECK(sniffed("op-table", {path}) == Match::kMaybe);
  const auto result = read_result("op-table", {path});
  REQUIRE_FALSE(result);
  CHECK(result.error().what.find("duration (seconds)") != std::string::npos);
  CHECK(result.error().what.find("its columns are: stage, kind, start_s, micro_batch") != std::string::npos);
  CHECK_FALSE(read_result("op-table", {folder.add("e.csv", "")}));
  CHECK_FALSE(read_result("op-table", {folder.add("h.csv", kHeader)}));
  CHECK_FALSE(read_result("op-table", {folder.add("g.csv", std::string(100'000, '\0'))}));
}

TEST_CASE("op-table counts bad rows with their line and keeps the rest") {
  struct Fault {
    const char *row, *name;
  };
  Folder folder;
  for (const Fault& fault : {Fault{"0,0,0,1,forward-compute,1", "op_table.bad_row"},
                             Fault{"0,0,0,1,forward-compute,\"1,2,3,0,0,0,0", "op_table.bad_row"},
                             Fault{"0,0,0,1,forward-compute,1,-2,0,0,0,0", "op_table.bad_time"},
                             Fault{"0,0,0,1,forward-compute,nan,1,0,0,0,0", "op_table.bad_time"},
                             Fault{"0,0,0,1,forward-compute,,1,0,0,0,0", "op_table.bad_time"},
                             Fault{"0,0,0,1,forward-compute,1e99,1,0,0,0,0", "op_table.bad_time"},
                             Fault{"0,0,0,1,forward-compute,3999999999,3999999999,0,0,0,0", "op_table.bad_time"},
                             Fault{"0,0,x,1,forward-compute,1,1,0,0,0,0", "op_table.bad_field"},
                             Fault{"0,0,99999999999,1,forward-compute,1,1,0,0,0,0", "op_table.bad_field"},
                             Fault{"0,0,0,1,,1,1,0,0,0,0", "op_table.bad_field"},
                             Fault{"0,0,0,1,forward-compute,1,1,0,0,-5,0", "op_table.bad_field"}}) {
    CAPTURE(fault.row);
    const Trace trace =
        read_with("op-table", {folder.add("t.csv", kHeader + kRow + fault.row + "\n0,0,0,1,gc,2,0,0,-1,0,-1\n")});
    CHECK(trace.cells.size() == 2);
    CHECK(trace.diagnostics.count(fault.name) == 1);
    CHECK(trace.diagnostics.items()[0].first.line == 3);
  }
  const Trace trace = read_with("op-table", {folder.add("t.csv", kHeader + kRow + "0,0,0,1,dance,2,1,0,-1,0,-1\n")});
  CHECK(trace.cells.size() == 2);
  CHECK(trace.diagnostics.count("op_table.unknown_kinds") == 1);
}

TEST_CASE("op-table lays steps end to end when the clock restarts, and only then") {
  Folder folder;
  const auto rows = [](double second) {
    return kHeader + "0,0,0,4,forward-compute,0.5,1.25,0,0,0,0\n0,0,0,4,backward-compute,2,1,0,0,0,0\n" +
           "0,0,0,9,forward-compute," + std::to_string(second) + ",1.5,0,0,0,0\n";
  };
  const Trace restarted = read_with("op-table", {folder.add("t.csv", rows(0.25))});
  CHECK(restarted.steps_laid_end_to_end);
  CHECK(restarted.diagnostics.count("op_table.steps_laid_end_to_end") == 1);
  CHECK(restarted.cells.start_ns == std::vector<int64_t>{0, 1'500'000'000, 2'500'000'000});
  CHECK(restarted.cells.end_ns[2] == 4'000'000'000);
  const Trace absolute = read_with("op-table", {folder.add("t.csv", rows(3.5))});
  CHECK_FALSE(absolute.steps_laid_end_to_end);
  CHECK(absolute.cells.start_ns[0] == 500'000'000);
}

TEST_CASE("op-table: a table says which ranks share a clock") {
  Folder folder;
  // Rank 2's forward begins 3 ms before that of rank 1 has ended, by their stamps.
  const auto table = [&](const char* column, const char* first, const char* second, const char* third) {
    std::string text = std::string("rank,stage,step,kind,start_ms,dur_ms,mb,") + column + "\n";
    const char* const clock[] = {first, second, third};
    for (int rank = 0; rank < 3; ++rank)
      for (int mb = 0; mb < 3; ++mb)
        text += std::to_string(rank) + "," + std::to_string(rank) + ",0,F," +
                std::to_string(10 * (mb + rank) - (rank == 2 ? 3 : 0)) + ",10," + std::to_string(mb) + "," +
                clock[rank] + "\n";
    return read_with("op-table", {folder.add("t.csv", text)});
  };
  for (const char* column : {"clock", "machine", "Host", "node"}) {
    CAPTURE(column);
    const Trace one = table(column, "a", "a", "a");
    CHECK(one.clock == ClockState::kShared);
    CHECK(one.diagnostics.flaw_count() == 0);
    const Trace two = table(column, "node10", "node10", "node9");
    CHECK(two.clock == ClockState::kUnaligned);
    CHECK(two.machine_count() == 2);
    CHECK(two.parts[0].machine == 1);  // in natural order of their names
    CHECK(two.parts[1].machine == 1);
    CHECK(two.parts[2].machine_name == "node9");
  }
  const Trace partly = table("clock", "a", "", "a");
  CHECK(partly.clock == ClockState::kUnaligned);
  CHECK(partly.machine_count() <= 1);
  CHECK(partly.diagnostics.count("op_table.unknown_clock") == 1);
  const std::string twice =
      folder.add("twice.csv", "rank,stage,kind,start_ms,dur_ms,clock\n0,0,F0,0,1,a\n0,0,B0,2,1,b\n");
  CHECK(read_with("op-table", {twice}).diagnostics.count("op_table.two_clocks") == 1);
}

TEST_CASE("op-table: ranks within a group are numbered anew, gmc stands in for mc") {
  Folder folder;
  const std::string head = "rank,dp,stage,step,optype,start_ts,duration,gmc,mb_id\n";
  const Trace trace = read_with("op-table", {folder.add("t.csv", head + "0,0,0,0,F,0,1,2,0\n0,0,1,0,F,1,1,3,0\n"
                                                                        "0,1,0,0,F,0,1,0,0\n0,1,1,0,F,1,1,1,0\n")});
  REQUIRE(trace.parts.size() == 4);
  CHECK(trace.diagnostics.count("op_table.conflicting_ranks") == 1);
  CHECK(trace.parts[3].stage == 1);
  CHECK(trace.parts[3].dp == 1);
  CHECK(trace.cells.chunk == std::vector<int32_t>{1, 0, 1, 0});
}

TEST_CASE("op-table on the published tables: counts and the span of every step") {
  struct Case {
    const char* name;
    size_t cells, parts, steps;
  };
  for (const Case& c : {Case{"ST", 6784, 8, 32}, Case{"SE", 107328, 64, 43}}) {
    const std::string base = "pipeline_ops/bytedance/";
    const std::string path = shared_data(base + "trace-" + c.name + ".csv.gz");
    const std::string answers = shared_data(base + "result-" + c.name + ".json");
    if (path.empty() || answers.empty()) continue;
    CHECK(sniffed("op-table", {path}) == Match::kCertain);
    CHECK(sniffed("op-json", {path}) == Match::kNo);
    const Trace trace = read_with("op-table", {path});
    check_consistent(trace);
    CHECK(trace.cells.size() == c.cells);
    CHECK(trace.parts.size() == c.parts);
    CHECK(trace.steps_laid_end_to_end);
    std::map<int32_t, std::pair<int64_t, int64_t>> spans;
    for (size_t i = 0; i < trace.cells.size(); ++i) {
      auto& span = spans.try_emplace(trace.cells.step[i], INT64_MAX, INT64_MIN).first->second;
      span.first = std::min(span.first, trace.cells.start_ns[i]);
      span.second = std::max(span.second, trace.cells.end_ns[i]);
    }
    CHECK(spans.size() == c.steps);
    simdjson::dom::parser parser;
    const auto text = read_all(answers, 1 << 24);
    REQUIRE(text);
    simdjson::dom::object steps;
    REQUIRE(parser.parse(*text)["step_t_base"].get_object().get(steps) == simdjson::SUCCESS);
    size_t compared = 0;
    int64_t end = 0;
    for (const auto& [step, span] : spans) {
      CHECK(span.first == end);  // no gap
      end = span.second;
      double expected = 0;
      REQUIRE(steps[std::to_string(step)].get_double().get(expected) == simdjson::SUCCESS);
      CHECK(static_cast<double>(span.second - span.first) / 1e9 == doctest::Approx(expected).epsilon(1e-6));
      ++compared;
    }
    CHECK(compared == c.steps);
  }
}
