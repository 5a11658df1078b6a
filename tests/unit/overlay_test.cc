// Source traces written again with changes: engine/write_overlay, exporters/overlay_file, trace-with-counters.
#include "base/input.h"
#include "engine/engine.h"
#include "exporters/overlay_file.h"
#include "reader_fixture.h"

using namespace stageline;

namespace {

std::string slice(int n, const std::string& more = ",\"args\":{\"stream\":7}") {
  return "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op" + std::to_string(n) +
         "\",\"pid\":1,\"tid\":1,\"ts\":" + std::to_string(n * 10) + ",\"dur\":5" + more + "}";
}
std::string text_of_file(const std::string& path) {
  auto text = read_all(path, size_t{1} << 30);
  REQUIRE(text);
  return *text;
}
std::string written(const Folder& folder, const Trace& trace, const TraceOverlay& overlay) {
  static int count = 0;  // what was read back is an input from then on, and no output any more
  const std::string out = folder.path() + "/out" + std::to_string(++count) + ".json";
  const Status status = write_overlay(trace, overlay, out);
  REQUIRE_MESSAGE(status, (status ? "" : status.error().text()));
  return text_of_file(out);
}

}  // namespace

TEST_CASE("an event gains, loses and keeps what it should") {
  CHECK(changed_event(R"({"a":1})", R"("k":2)", false, "") == R"({"a":1, "args": {"k":2}})");
  CHECK(changed_event(R"({"args":{}, "a":1})", R"("k":2)", false, "") == R"({"args":{"k":2}, "a":1})");
  CHECK(changed_event("{\"args\": {\n \"x\": \"}\\\"\"\n}}", R"("k":2)", false, "") ==
        "{\"args\": {\n \"x\": \"}\\\"\", \"k\":2\n}}");
  CHECK(changed_event(R"({"a":{"args":1},"args":[1],"b":2})", R"("k":2)", false, "") ==
        R"({"a":{"args":1},"args":{"k":2},"b":2})");
  CHECK(changed_event(R"({"a":1, "args":{"x":1}, "b":2})", "", true, "") == R"({"a":1, "b":2})");
  CHECK(changed_event(R"({"args":{"x":1}, "b":2})", "", true, "") == R"({ "b":2})");
  CHECK(changed_event(R"({"args":{"x":1}})", "", true, "") == R"({})");
  CHECK(changed_event(R"({"args":{"x":1},"name":"n\"}"})", R"("k":2)", true, R"("5")") ==
        R"({"args":{"k":2},"name":"5"})");
  CHECK(changed_event(R"({})", R"("k":2)", false, R"("5")") == R"({"args": {"k":2}})");
}

TEST_CASE("an overlay keeps the source") {  // F27
  Folder folder;
  const std::string head = "{\n  \"schemaVersion\": 1, \"list\": [1, \"]\"],\n  \"traceEvents\": [\n  ";
  const std::string tail = "\n  ],\n  \"traceName\": \"a]b\"\n}\n";
  const std::string source = head + slice(0) + ",\n  " + slice(1, "") + " ,\n  " + slice(2) + "," + slice(3) + tail;
  const Trace trace = read_with("kineto", {folder.add("t.json", source)});
  CHECK(written(folder, trace, {}) == source);

  TraceOverlay overlay;
  overlay.new_events = {"{\"new\":1}", "{\"new\":2}"};
  CHECK(written(folder, trace, overlay) == head + slice(0) + ",\n  " + slice(1, "") + " ,\n  " + slice(2) + "," +
                                               slice(3) + ",\n{\"new\":1},\n{\"new\":2}" + tail);
  overlay.leave_out = {true, false, true};
  overlay.extra_args[1] = "\"critical\":1";
  overlay.new_names[3] = "\"0\"";
  overlay.drop_args = {false, false, false, true};
  std::string renamed = slice(3, "");
  renamed.replace(renamed.find("op3"), 3, "0");
  CHECK(written(folder, trace, overlay) ==
        head + slice(1, ", \"args\": {\"critical\":1}") + "," + renamed + ",\n{\"new\":1},\n{\"new\":2}" + tail);
  overlay = {};
  overlay.leave_out.assign(4, true);
  CHECK(written(folder, trace, overlay) == head + tail);
  overlay.new_events = {"{}"};
  CHECK(written(folder, trace, overlay) == head + "{}" + tail);

  CHECK(write_overlay(trace, {}, folder.path() + "/out.json.gz"));
  CHECK(text_of_file(folder.path() + "/out.json.gz") == source);
  CHECK(read_head(folder.path() + "/out.json.gz", 1) == "{");
  CHECK(!write_overlay(trace, {}, folder.path() + "/t.json"));  // the source itself
  folder.add("t.json", source + " ");
  CHECK(!write_overlay(trace, {}, folder.path() + "/out.json"));  // it changed
}

TEST_CASE("an overlay of odd sources is proper JSON") {
  Folder folder;
  TraceOverlay overlay;
  overlay.new_events = {"{\"n\":1}"};
  const auto check = [&](const std::string& source, const std::string& wanted) {
    const Trace trace = read_with("kineto", {folder.add("t.json", source)});
    CHECK(written(folder, trace, overlay) == wanted);
  };
  check("[" + slice(0) + "]", "[" + slice(0) + ",\n{\"n\":1}]");
  check("[" + slice(0) + ",\n]", "[" + slice(0) + ",\n{\"n\":1}]");
  check("[" + slice(0) + ",,\n" + slice(1) + "]", "[" + slice(0) + ",\n" + slice(1) + ",\n{\"n\":1}]");
  check("[" + slice(0) + ",{\"ph\":\"X", "[" + slice(0) + ",\n{\"n\":1}\n]\n");  // broken off
  check("{\"traceEvents\":[" + slice(0) + ",\n", "{\"traceEvents\":[" + slice(0) + ",\n{\"n\":1}\n]}\n");
}

TEST_CASE("an overlay of a source longer than a window") {
  Folder folder;
  std::string source = "{\"traceEvents\":[\n";
  const int count = 20'000;
  for (int i = 0; i < count; ++i) source += (i > 0 ? ",\n" : "") + slice(i);
  source += "\n],\"after\":\"" + std::string(600'000, 'x') + "\"}";
  const Trace trace = read_with("kineto", {folder.add("t.json", source)});
  CHECK((written(folder, trace, {}) == source));
  TraceOverlay overlay;
  overlay.leave_out.assign(count, false);
  for (int i = 0; i < count; i += 2) overlay.leave_out[i] = true;
  std::string half = "{\"traceEvents\":[\n";
  for (int i = 1; i < count; i += 2) half += (i > 1 ? ",\n" : "") + slice(i);
  half += source.substr(source.find("\n],\"after\""));
  CHECK((written(folder, trace, overlay) == half));
}

TEST_CASE("trace with counters: one file per rank, times of the file to the nanosecond") {
  Folder folder;
  std::vector<std::string> paths;
  for (const char* rank : {"0", "4"})
    paths.push_back(folder.add(
        std::string("r") + rank + ".json",
        std::string("{\"distributedInfo\":{\"rank\": ") + rank +
            "},\"baseTimeNanoseconds\":1700000000000000000,\"traceEvents\":["
            "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"hipLaunchKernel\",\"pid\":9,\"tid\":9,\"ts\":10.001,"
            "\"dur\":1,\"args\":{\"correlation\":1}},"
            "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":2,\"tid\":0,\"ts\":20.25,\"dur\":5,"
            "\"args\":{\"correlation\":1,\"stream\":0}}]}"));
  Trace trace = read_with("kineto", paths);
  CHECK(rank_path("a/out.json.gz", 3) == "a/out.rank3.json.gz");
  CHECK(rank_path("out", 3) == "out.rank3");
  std::vector<std::string> names;
  Diagnostics notes;
  REQUIRE(export_trace(std::make_shared<const Run>(trace), notes, folder.path() + "/out.json", "trace-with-counters",
                       {}, &names));
  REQUIRE(names == std::vector<std::string>{folder.path() + "/out.rank0.json", folder.path() + "/out.rank4.json"});
  const std::string text = text_of_file(names[1]);
  CHECK(text.find(
            R"({"ph": "C", "name": "Queue Length", "pid": 2, "id": 0, "ts": 10.001, "args": {"Queue Length": 1}})") !=
        std::string::npos);
  CHECK(text.find(R"("ts": 20.25, "args": {"Queue Length": 0}})") != std::string::npos);
  CHECK(!export_trace(std::make_shared<const Run>(trace), notes, "-", "trace-with-counters", {}));
  trace.slice_filter.ranks = {4};
  names.clear();
  REQUIRE(export_trace(std::make_shared<const Run>(trace), notes, folder.path() + "/one.json", "trace-with-counters",
                       {}, &names));
  CHECK(names == std::vector<std::string>{folder.path() + "/one.json"});
}
