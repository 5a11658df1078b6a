#include <doctest/doctest.h>

#include <random>
#include <string>

#include "base/csv.h"
#include "base/diagnostics.h"
#include "base/find_anchor.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "base/text.h"
#include "model/problems.h"
#include "pipeline/cells/problems.h"

using namespace stageline;

TEST_CASE("decimal text becomes nanoseconds exactly") {
  CHECK(parse_decimal_ns("1697793307213.760986", 6) == 1697793307213760986);
  CHECK(parse_decimal_ns("848671.6747283936", 3) == 848671675);
  CHECK(parse_decimal_ns("0.8486716747283936", 9) == 848671675);
  CHECK(parse_decimal_ns("8.486716747283936e5", 3) == 848671675);
  CHECK(parse_decimal_ns("0.5", 0) == 0);  // half to even
  CHECK(parse_decimal_ns("1.5", 0) == 2);
  CHECK(parse_decimal_ns("2.5", 0) == 2);
  CHECK(parse_decimal_ns("2.50000000000000000000000000000000000000000001", 0) == 3);
  CHECK(parse_decimal_ns("-12.25", 6) == -12250000);
  CHECK(parse_decimal_ns("1e-30", 0) == 0);
  CHECK(parse_decimal_ns("0", 9) == 0);
  CHECK(parse_decimal_ns("1e3", 0) == 1000);
  CHECK(parse_decimal_ns("9223372036854775807", 0) == INT64_MAX);
  for (const char* bad : {"", "-", ".", "1.2.3", "1e", "abc", "1 ", "nan", "9223372036854775808", "1e400", "1e99",
                          "+-1", "1e+-5", "1e++5"})
    CHECK_MESSAGE(!parse_decimal_ns(bad, 0), bad);
  CHECK(parse_decimal_ns("+1e+3", 0) == 1000);
  CHECK(parse_int("+12") == 12);
  CHECK(parse_double("+.5") == 0.5);
  for (const char* bad : {"+-12", "++12", "+", "-+12"}) {
    CHECK_MESSAGE(!parse_int(bad), bad);
    CHECK_MESSAGE(!parse_double(bad), bad);
  }
}

TEST_CASE("sums stop at the limits of their type") {
  CHECK(sum_or_limit(3, -5) == -2);
  CHECK(sum_or_limit(INT64_MAX - 1, 5) == INT64_MAX);
  CHECK(sum_or_limit(INT64_MIN + 1, -5) == INT64_MIN);
}

TEST_CASE("doubles print as Python's repr prints them") {
  CHECK(repr_double(1697793307213761.0) == "1697793307213761.0");
  CHECK(repr_double(1697793307213760.75) == "1697793307213760.8");
  CHECK(repr_double(0.0) == "0.0");
  CHECK(repr_double(1e16) == "1e+16");
  CHECK(repr_double(9999999999999998.0) == "9999999999999998.0");
  CHECK(repr_double(0.0001) == "0.0001");
  CHECK(repr_double(0.00001) == "1e-05");
}

TEST_CASE("numbers for prose") {
  CHECK(fixed(-0.0004, 3) == "0.000");  // nothing is less than zero and shown as zero
  CHECK(fixed(-0.0006, 3) == "-0.001");
  CHECK(fixed(-0.0, 0) == "0");
  CHECK(fixed(-10, 1) == "-10.0");
  CHECK(human_duration(2.2134e9) == "2.21\u202fs");
  CHECK(human_duration(8.5 * 86'400e9) == "8.5\u202fdays");
  CHECK(human_duration(138'557'450'644'882e3) == "1604\u202fdays");
  CHECK(human_duration(-2.4e179) == "-1 000 000 000 000 000 000 days");
  CHECK(human_duration(66.84e6) == "66.8\u202fms");
  CHECK(human_duration(19e3) == "19.0\u202fµs");
  CHECK(human_duration(420) == "420\u202fns");
  CHECK(grouped(112320) == "112\u202f320");
  CHECK(grouped(6784) == "6784");
  CHECK(percent(0.3641) == "36.4\u202f%");
  CHECK(ns_as_decimal(1697793307213760986, 6) == "1697793307213.760986");
  CHECK(ns_as_decimal(-1500, 3) == "-1.5");
}

TEST_CASE("natural order and near misses") {
  CHECK(natural_less("workerlog.2", "workerlog.10"));
  CHECK(natural_less("machine2/workerlog.0", "machine10/workerlog.0"));
  CHECK_FALSE(natural_less("a", "a"));
  CHECK(nearest("analyse", {"analyze", "export"}) == "analyze");
  CHECK(nearest("reprot", {"report", "export"}) == "report");
  CHECK(nearest("zzz", {"report", "export"}).empty());
}

TEST_CASE("number lists") {
  CHECK(*parse_number_list("0-3,8") == std::vector<int32_t>{0, 1, 2, 3, 8});
  CHECK(*parse_number_list(" 1 , 0") == std::vector<int32_t>{0, 1});
  for (const char* bad : {"", "3-1", "a", "1,,2", "0-9999999999", "-1"}) CHECK_MESSAGE(!parse_number_list(bad), bad);
}

TEST_CASE("JSON strings are always valid") {
  std::string out;
  append_json_string(out, "a\"\\\n\x01\xff</script>");
  CHECK(out == "\"a\\\"\\\\\\n\\u0001\uFFFD<\\/script>\"");
  out.clear();
  append_json_string(out, "前\U0001F600", true);
  CHECK(out == "\"\\u524d\\ud83d\\ude00\"");
}

TEST_CASE("CSV records with quotes") {
  std::string_view rest = "a,\"b,\"\"c\"\"\",\r\n\"x\ny\",z";
  std::vector<std::string_view> fields;
  std::vector<std::string> storage;
  int64_t lines = 0;
  REQUIRE(next_csv_record(rest, fields, storage, &lines));
  CHECK(fields == std::vector<std::string_view>{"a", "b,\"c\"", ""});
  REQUIRE(next_csv_record(rest, fields, storage, &lines));
  CHECK(fields == std::vector<std::string_view>{"x\ny", "z"});
  CHECK_FALSE(next_csv_record(rest, fields, storage, &lines));
  CHECK(lines == 3);
}

TEST_CASE("diagnostics count kinds and keep the earliest place") {
  Diagnostics d;
  d.add({"x.bad", Severity::kLoss, {"bad", ""}, 1, {"f", 9}});
  d.add({"x.bad", Severity::kLoss, {"worse", ""}, 1, {"f", 4}});
  d.add({"x.note", Severity::kInfo, {"note", ""}, 1, {}});
  CHECK(d.count("x.bad") == 2);
  CHECK(d.items()[0].message.en == "bad");
  CHECK(d.items()[0].first.line == 4);
  CHECK(d.flaw_count() == 1);
}

TEST_CASE("diagnostics: a problem is named after its reader, and has its sentence in both languages") {
  Diagnostics d;
  d.add(problem::reader_no_steps.of("op_json"), Args().set("unit", words("unit.event")));
  d.add(problem::reader_no_steps.of("op_table"), Args().set("unit", words("unit.row")));
  d.add(problem::cells_off_schedule.on("rank_3"), Args()
                                                      .set("rank", int64_t{3})
                                                      .set("step", int64_t{7})
                                                      .set("row", int64_t{2})
                                                      .set("expected", "")
                                                      .set("found", "F0")
                                                      .set("why", ""));
  REQUIRE(d.items().size() == 3);
  CHECK(d.items()[0].name == "op_json.no_steps");
  CHECK(d.items()[1].name == "op_table.no_steps");
  CHECK(d.items()[2].name == "cells.off_schedule.rank_3");
  CHECK(d.items()[1].message.en.find("row") != std::string::npos);
  CHECK(d.items()[1].message.in(true) != d.items()[1].message.en);
  CHECK(d.items()[0].severity == Severity::kInfo);
  CHECK(problem::reader_no_steps.as(Severity::kLoss).of("x").full_name() == "x.no_steps");
}

TEST_CASE("find_anchor finds what std::string finds") {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text(random() % 200, ' ');
    for (char& c : text) c = "Pf rofile"[random() % 9];
    if (random() % 2 && text.size() > 9) text.replace(random() % (text.size() - 8), 9, "Profiler ");
    for (size_t from = 0; from <= text.size(); ++from)
      REQUIRE(find_anchor(text, from, "Profiler ", 3) == text.find("Profiler ", from));
  }
}
