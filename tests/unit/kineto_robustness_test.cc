// Real files challenge a reader: the robustness list of docs/formats/kineto.md, one case each.
#include <doctest/doctest.h>
#include <zlib.h>

#include "kineto_fixture.h"

using namespace stageline;
using namespace kineto_fixture;

namespace {

std::string gzip(const std::string& text) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

const std::string kThree = op("a", 1, 2) + ",\n" + op("b", 4, 2) + ",\n" + op("c", 7, 2);

std::string names_in(const Folder& folder, const std::string& text, const std::string& name = "t.json") {
  const std::string path = folder.add(name, text);
  CHECK_MESSAGE(sniffed("kineto", {path}) == Match::kCertain, text.substr(0, 300));
  return names_of(read_with("kineto", {path}));
}

}  // namespace

TEST_CASE("kineto robustness 1: cut files, gzip in every dress, byte order mark") {
  Folder folder;
  const std::string whole = trace(kThree);
  for (size_t cut = whole.find("\"c\""); cut < whole.size() - 6; cut += 7) {
    const Trace t = read_with("kineto", {folder.add("t.json", whole.substr(0, cut))});
    const std::string names = names_of(t);
    CHECK_MESSAGE((names == "a,b" || names == "a,b,c"), whole.substr(0, cut));
    CHECK(t.diagnostics.count("kineto.truncated") == 1);
  }
  CHECK(names_in(folder, gzip(whole), "t.json.gz") == "a,b,c");
  CHECK(names_in(folder, gzip(whole), "t.json") == "a,b,c");
  CHECK(names_in(folder, whole, "plain.json.gz") == "a,b,c");
  CHECK(names_in(folder, gzip(whole.substr(0, 80)) + gzip(whole.substr(80)), "members.json.gz") == "a,b,c");
  CHECK(names_in(folder, "\xef\xbb\xbf" + whole) == "a,b,c");
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += op("n" + std::to_string(i % 977), i * 3, 2) + ",\n";
  const std::string packed = gzip(trace(many + op("end", 90'000, 1)));
  const Trace cut = read_with("kineto", {folder.add("cut.json.gz", packed.substr(0, packed.size() / 2))});
  CHECK(cut.slice_count() > 5'000);
  CHECK(cut.slice_count() < 20'000);
  CHECK(cut.diagnostics.flaw_count() > 0);
  std::string altered = gzip(whole);
  altered[altered.size() - 8] ^= 1;  // the checksum
  const Trace kept = read_with("kineto", {folder.add("altered.json.gz", altered)});
  CHECK(names_of(kept) == "a,b,c");
  CHECK(kept.diagnostics.count("kineto.read_stopped") == 1);
}

TEST_CASE("kineto robustness 2 and 3: quotes, backslashes, control characters, other encodings in names") {
  Folder folder;
  for (const std::string name :
       {"{\"device\": \"cpu\"}", "C:\\data\\dir", "tab\there", "f(\"x\", 1)", "torch/a.py(3): <module>"}) {
    const Trace t = read_with(
        "kineto", {folder.add("t.json", trace(op("a", 1, 2) + ",\n" + op(name, 4, 2, 77) + ",\n" + op("c", 7, 2)))});
    CHECK(names_of(t) == "a," + name + ",c");
    CHECK(t.parts[0].slices.start_ns[slice_named(t, name)] == 4000);
  }
  const Trace odd = read_with(
      "kineto", {folder.add("t.json", trace(op("a", 1, 2) + ",\n" + op("5\" disk", 4, 2) + ",\n" + op("c", 7, 2)))});
  CHECK(names_of(odd) == "a,5\" disk,c");
  CHECK(odd.diagnostics.count("kineto.repaired_event") == 1);
  const Trace latin = read_with("kineto", {folder.add("t.json", trace(op("caf\xe9", 1, 2)))});
  CHECK(names_of(latin) == "caf\xef\xbf\xbd");
  CHECK(latin.diagnostics.count("kineto.repaired_event") == 1);
}

TEST_CASE("kineto robustness 4 and 5: no numbers, commas, roots of every shape") {
  Folder folder;
  const std::string odd =
      x("kernel", "k", "4", "2", "\"warps per SM\": inf, \"stream\": 7, \"bw\": NaN, \"n\": N/A,", "0", "7");
  CHECK(names_in(folder, trace(op("a", 1, 2) + ",\n" + odd + ",\n" + op("c", 7, 2))) == "a,k,c");
  CHECK(names_in(folder, trace(kThree + ",")) == "a,b,c");
  CHECK(names_in(folder, trace(op("a", 1, 2) + ",,\n" + op("b", 4, 2))) == "a,b");
  CHECK(names_in(folder, "[" + kThree + "]") == "a,b,c");
  CHECK(names_in(folder, "[" + kThree) == "a,b,c");
  CHECK(names_in(folder, "{\"traceEvents\": [" + kThree) == "a,b,c");
  std::string lines = op("a", 1, 2) + "\n" + op("b", 4, 2) + "\n";
  CHECK(names_in(folder, lines) == "a,b");
  for (char& c : lines)
    if (c == '\n') c = ' ';
  CHECK(names_in(folder, lines) == "a,b");
  const std::string info =
      "  \"INFO\": [\"said \\\"x\\\"\", \"{[\"],\n  \"distributedInfo\": {\"rank\": 3, \"world_size\": 4},\n";
  CHECK(read_with("kineto", {folder.add("t.json", trace(kThree, info))}).parts[0].rank == 3);
  const std::string after = "{\"schemaVersion\": 1, \"traceEvents\": [" + kThree +
                            "],\n \"distributedInfo\": {\"rank\": 5, \"world_size\": 6}, \"traceName\": \"x\"}";
  CHECK(read_with("kineto", {folder.add("t.json", after)}).parts[0].rank == 5);
  const std::string twice = "  \"distributedInfo\": {\"rank\": 1},\n  \"distributedInfo\": {\"rank\": 2},\n";
  const Trace t = read_with("kineto", {folder.add("t.json", trace(kThree, twice))});
  CHECK(t.parts[0].rank == 2);
  CHECK(t.diagnostics.count("kineto.rank_said_twice") == 1);
}

TEST_CASE("kineto robustness 6: process and thread numbers of every shape") {
  Folder folder;
  std::string events;
  int at = 0;
  for (const char* id : {"7", "\"7\"", "-1", "\"Spans\"", "\"\"", "4294967295", "123456789012345678", "null", "0"}) {
    events += x("cpu_op", "op" + std::to_string(at), std::to_string(at * 10), "5", "", id, id) + ",\n";
    ++at;
  }
  // A container's process 1 and device 1 are distinguished by their categories.
  events += x("kernel", "k", "500", "5", "\"stream\": 1, \"correlation\": 3", "1", "1") + ",\n" +
            x("cpu_op", "host of 1", "600", "5", "", "1", "2");
  const Trace t = read_with("kineto", {folder.add("t.json", trace(events))});
  CHECK(t.parts[0].slices.size() == 11);
  CHECK(t.parts[0].device == 1);
  size_t device_lanes = 0, lanes_of_7 = 0;
  for (const Lane& lane : t.parts[0].lanes) {
    device_lanes += lane.kind == LaneKind::kDeviceStream;
    lanes_of_7 += lane.pid == "7";
  }
  CHECK(device_lanes == 1);
  CHECK(lanes_of_7 == 1);  // 7 and "7" are one thread
}

TEST_CASE("kineto robustness 7: times as text, with exponent, with 19 digits; durations missing or negative") {
  Folder folder;
  const Trace t = read_with(
      "kineto", {folder.add("t.json", trace(x("cpu_op", "a", "1711964646123456.789", "0.001") + ",\n" +
                                            x("cpu_op", "b", "\"1711964646123458.5\"", "\"2\"") + ",\n" +
                                            x("cpu_op", "c", "1.711964646123461e15", "1E1") + ",\n" +
                                            x("cpu_op", "d", "1711964646123480", "-3") + ",\n" +
                                            x("cpu_op", "e", "1711964646123490", "0") + ",\n" +
                                            "{\"ph\": \"X\", \"name\": \"f\", \"pid\": 1, \"tid\": 1, \"ts\": 4},\n" +
                                            "{\"ph\": \"X\", \"name\": \"g\", \"pid\": 1, \"tid\": 1, \"dur\": 4}"))});
  CHECK(names_of(t) == "a,b,c,d,e");
  const Slices& s = t.parts[0].slices;
  CHECK(s.start_ns[slice_named(t, "a")] == 1711964646123456789);
  CHECK(s.dur_ns[slice_named(t, "a")] == 1);
  CHECK(s.start_ns[slice_named(t, "b")] == 1711964646123458500);
  CHECK(s.start_ns[slice_named(t, "c")] == 1711964646123461000);
  CHECK(s.dur_ns[slice_named(t, "c")] == 10'000);
  CHECK(s.dur_ns[slice_named(t, "d")] == 0);
  CHECK(t.diagnostics.count("kineto.negative_duration") == 1);
  CHECK(t.diagnostics.count("kineto.no_duration") == 1);
  CHECK(t.diagnostics.count("kineto.no_time") == 1);
}

TEST_CASE("kineto robustness 8 and 9: overlap on a stream, repeated events, a window that ends days later") {
  Folder folder;
  const std::string days =
      "{\"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\", \"pid\": \"\", \"tid\": \"\", "
      "\"ts\": 900000000000}";
  const Trace t =
      read_with("kineto", {folder.add("t.json", trace(kernel("k1", 10, 10, 1) + ",\n" + kernel("k2", 15, 10, 2) +
                                                      ",\n" + kernel("k2", 15, 10, 2) + ",\n" + days))});
  const Part& part = t.parts[0];
  REQUIRE(part.slices.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(part.slices.parent[i] == kNoSliceIndex);  // overlap does not count as nesting
  const SliceCounts counts = count_slices(t);
  CHECK(counts.end_ns == 25'000);
  CHECK(counts.marks == 1);
}

TEST_CASE("kineto robustness 11: other formats are named") {
  Folder folder;
  struct Case {
    const char* name;
    std::string text;
    const char* word;
  };
  for (const Case& c :
       {Case{"et.json", "{\"schema\": \"1.0.1\", \"pid\": 1, \"nodes\": [{\"name\": \"x\", \"id\": 2, \"rf_id\": 0}]}",
             "Chakra"},
        Case{"stats.csv", "\"Kind\",\"Operation\",\"Start_Timestamp\"\n\"SCRATCH_MEMORY\",\"X\",1\n", "rocprofv3"},
        Case{"snap.pickle", std::string("\x80\x04\x95\x10\0\0\0", 7), "pickle"},
        Case{"report.nsys.sqlite", std::string("SQLite format 3\0 CUPTI_ACTIVITY_KIND_KERNEL", 43), "Nsight"},
        Case{"m.json", "[[-1, 1, 37888, 7], [5, 1, 512, 7]]", "memory timeline"},
        Case{"renamed_trace.json",
             "[{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": \"Ascend Hardware\"}}]",
             "Ascend"}}) {
    const std::string path = folder.add(c.name, c.text);
    CHECK(sniffed("kineto", {path}) == Match::kNo);
    const auto reader = choose_reader(source_of({path}), "");
    REQUIRE_FALSE(reader);
    CHECK_MESSAGE(reader.error().what.find(c.word) != std::string::npos, reader.error().text());
    CHECK(!reader.error().hint.empty());
    const auto forced = read_result("kineto", {path});
    REQUIRE_FALSE(forced);
  }
}

TEST_CASE("kineto robustness 12: names of kernels are kept whole") {
  Folder folder;
  const std::string name =
      "void at::native::" + std::string(3000, 't') + "<int>(int, {lambda()#2}::operator()() const)";
  CHECK(names_in(folder, trace(kernel(name, 1, 2, 1))) == name);
}

TEST_CASE("kineto: what is recognised, and what is left to narrower readers") {
  Folder folder;
  const std::string devices(80'000, ' ');
  CHECK(names_in(folder, "{\"schemaVersion\": 1, \"deviceProperties\": [" + devices + "], \"traceEvents\": [" + kThree +
                             "]}") == "a,b,c");
  CHECK(names_in(folder, "{\"metadata\": {\"x\": \"" + std::string(100'000, 'y') + "\"}, \"traceEvents\": [" + kThree +
                             "]}") == "a,b,c");
  std::string names;
  for (int i = 0; i < 2'000; ++i)
    names += "{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": " + std::to_string(i) +
             ", \"args\": {\"name\": \"t\"}},\n";
  CHECK(names_in(folder, trace(names + kThree)) == "a,b,c");
  const std::string chrome =
      "[{\"ph\":\"X\",\"name\":\"task\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2,\"args\":{\"n\":1}}]";
  CHECK(sniffed("kineto", {folder.add("c.json", chrome)}) == Match::kMaybe);
  CHECK((*choose_reader(source_of({folder.path() + "/c.json"}), ""))->name == std::string("kineto"));
  const std::string pipeline =
      "[{\"ph\":\"X\",\"name\":\"forward\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2,\"args\":{\"step\":0,\"rank\":0}}]";
  CHECK((*choose_reader(source_of({folder.add("p.json", pipeline)}), ""))->name == std::string("op-json"));
  for (const char* text : {"", "[]", "{}", "[", "workerlog", "a,b\n1,2\n", "{\"a\": {\"schemaVersion\": 1}}", "[1,2]"})
    CHECK_MESSAGE(sniffed("kineto", {folder.add("n.json", text)}) == Match::kNo, text);
}

TEST_CASE("kineto robustness: times beyond what the model holds are left out") {
  Folder folder;
  const Trace t = read_with(
      "kineto", {folder.add("t.json", trace(op("a", 1, 2) + ",\n" + x("cpu_op", "far", "9100000000000000", "1") +
                                            ",\n" + x("cpu_op", "long", "1", "9100000000000000")))});
  CHECK(names_of(t) == "a");
  CHECK(t.diagnostics.count("kineto.bad_time") == 2);
}

TEST_CASE("kineto phases: of two B/E pairs with equal times the one begun first is outside") {
  Folder folder;
  const auto e = [](const char* ph, const char* name, int ts) {
    return std::string("{\"ph\":\"") + ph + "\",\"name\":\"" + name +
           "\",\"cat\":\"cpu_op\",\"pid\":1,\"tid\":2,\"ts\":" + std::to_string(ts) + "}";
  };
  const Trace t =
      read_with("kineto", {folder.add("t.json", "[" + e("B", "outer", 10) + "," + e("B", "inner", 10) + "," +
                                                    e("E", "inner", 20) + "," + e("E", "outer", 20) + "]")});
  CHECK(t.parts[0].slices.parent[slice_named(t, "inner")] == slice_named(t, "outer"));
}

TEST_CASE("kineto robustness: durations that no sum holds are taken as 0") {
  Folder folder;
  std::string events = op("whole", 1, 2) + ",\n" + op("whole", 5, 2);  // two of a name: no lone record far away
  for (int i = 0; i < 3; ++i) events += ",\n" + x("cpu_op", "endless", "-3.9e15", "7.8e15", "", "7", std::to_string(i));
  const Trace trace_read = read_with("kineto", {folder.add("t.json", trace(events))});
  CHECK(trace_read.slice_count() == 5);
  CHECK(trace_read.diagnostics.count("kineto.bad_duration") == 3);
  CHECK(trace_read.parts[0].slices.dur_ns[slice_named(trace_read, "whole")] == 2'000);
  CHECK(trace_read.parts[0].slices.dur_ns[slice_named(trace_read, "endless")] == 0);
}

TEST_CASE("kineto robustness: device work drawn around its own owner closes no circle") {
  Folder folder;
  const std::string around = x("kernel", "k", "10", "40", "\"stream\": 7, \"correlation\": 9, \"External id\": 5");
  const std::string flow = R"({"ph": "s", "id": 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": 7, "tid": 7, "ts": 60})";
  const std::string inner = op("owner", 20, 10, 5) + ",\n" + launch(22, 2, 9);
  const Trace t = read_with(
      "kineto", {folder.add("t.json", trace(op("top", 0, 100, 1) + ",\n" + around + ",\n" + inner + ",\n" + flow))});
  const Slices& s = t.parts[0].slices;
  CHECK(s.parent[slice_named(t, "k")] == slice_named(t, "top"));
  CHECK(s.parent[slice_named(t, "owner")] == slice_named(t, "k"));
}

TEST_CASE("kineto robustness: device work on a host's thread that closes a circle through another thread") {
  Folder folder;
  const auto around = [](const char* name, const char* tid, int op, int correlation) {
    return x(
        "kernel", name, "10", "40",
        "\"stream\": 7, \"correlation\": " + std::to_string(correlation) + ", \"External id\": " + std::to_string(op),
        "7", tid);
  };
  const auto owner = [](const char* name, const char* tid, int id) {
    return x("cpu_op", name, "20", "10", "\"External id\": " + std::to_string(id), "7", tid);
  };
  // a lies in j, b lies in k; j is b's and k is a's. A first row on each thread makes it a host's.
  const Trace t = read_with(
      "kineto",
      {folder.add("t.json", trace(op("top", 0, 100, 1) + ",\n" + x("cpu_op", "other", "0", "100", "", "7", "8") +
                                  ",\n" + around("j", "7", 3, 8) + ",\n" + around("k", "8", 2, 9) + ",\n" +
                                  owner("a", "7", 2) + ",\n" + owner("b", "8", 3)))});
  const Slices& s = t.parts[0].slices;
  for (const char* name : {"j", "k", "a", "b"}) {
    uint32_t at = slice_named(t, name);
    for (int steps = 0; at != kNoSliceIndex; at = s.parent[at]) REQUIRE(++steps < 10);
  }
}

TEST_CASE("kineto robustness: an arrow ends where the innermost slice that holds its time is, its end included") {
  Folder folder;
  const auto arrow = [](const char* phase, const char* id, const char* ts) {
    return std::string(R"({"ph": ")") + phase + R"(", "id": )" + id + R"(, "cat": "fwdbwd", "name": "f", "pid": 7, )" +
           R"("tid": 7, "ts": )" + ts + "}";
  };
  // The rows are not in the order of time; device work whose owner is elsewhere is between them.
  const Trace t = read_with(
      "kineto", {folder.add("t.json", trace(op("top", 0, 100, 1) + ",\n" + op("inner", 10, 10, 2) + ",\n" +
                                            x("kernel", "k", "30", "10", "\"stream\": 7, \"External id\": 2") + ",\n" +
                                            arrow("s", "1", "50") + ",\n" + arrow("f", "1", "20") + ",\n" +
                                            arrow("s", "2", "15") + ",\n" + arrow("f", "2", "100")))});
  const auto& links = t.parts[0].slice_links;
  REQUIRE(links.size() == 2);
  CHECK(links[0].from == slice_named(t, "top"));
  CHECK(links[0].to == slice_named(t, "inner"));
  CHECK(links[1].from == slice_named(t, "inner"));
  CHECK(links[1].to == slice_named(t, "top"));
}

TEST_CASE("kineto robustness: memory records need bytes, and devices 32 bits") {
  Folder folder;
  const auto memory = [](const char* args) {
    return std::string(R"({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 7, "ts": 5, )") +
           R"("args": {)" + args + "}}";
  };
  const Trace t = read_with(
      "kineto",
      {folder.add("t.json", trace(op("a", 1, 9) + ",\n" + memory(R"("Addr": 64)") + ",\n" +
                                  memory(R"("Addr": 64, "Bytes": "much")") + ",\n" +
                                  memory(R"("Addr": 64, "Bytes": 8, "Device Type": 1099511627776, "Device Id": 3)")))});
  const auto& records = t.parts[0].memory;
  REQUIRE(records.size() == 2);
  CHECK(records[0].bytes == 0);
  CHECK(records[1].device_type == -1);
  CHECK(records[1].device_id == 3);
  CHECK(t.parts[0].marks.size() == 1);
}

TEST_CASE("kineto robustness: the operator around a launch is found through any depth") {
  Folder folder;
  std::string events = op("owner", 0, 5'000);
  for (int i = 1; i < 1'000; ++i)
    events += ",\n" + x("user_annotation", "a", std::to_string(i), std::to_string(5'000 - 2 * i));
  for (int i = 1; i < 10; ++i)
    events += ",\n" + launch(2'000 + 10 * i, 5, i) + ",\n" + kernel("k" + std::to_string(i), 3'000 + i, 1, i);
  const Trace t = read_with("kineto", {folder.add("t.json", trace(events))});
  for (int i = 1; i < 10; ++i)
    CHECK(t.parts[0].slices.parent[slice_named(t, "k" + std::to_string(i))] == slice_named(t, "owner"));
}

TEST_CASE("kineto robustness: events that each lack a brace") {
  Folder folder;
  std::string events = op("a", 1, 2);
  const std::string whole = op("b", 5, 1);
  for (int i = 0; i < 3; ++i) events += ",\n" + whole.substr(0, whole.rfind('}'));
  const Trace t = read_with("kineto", {folder.add("t.json", trace(events + ",\n" + op("c", 9, 2)))});
  CHECK(names_of(t) == "a,b,b,b,c");
  CHECK(t.diagnostics.count("kineto.repaired_event") == 3);
}
