// The inferences of the default critical path without recorded evidence, on tiny traces; windows that do not exist.
#include "analyses/critical_path_analysis/exact_path.h"
#include "profile/torch_view.h"
#include "tiny_traces.h"

using namespace stageline;

using namespace tiny;

TEST_CASE("critical path: an idle thread without arrows waited for the thread of its process last at work") {
  // The autograd thread has an operator at 0, is idle while the main thread is at work, and goes on at 1010.
  const auto ours =
      answer("critical-path-analysis",
             {op("backward", "0", "10", 11), op("forward", "100", "900"), op("backward", "1010", "50", 11),
              event("cuda_runtime", "cudaEventQuery", 9, 12, "1005", "1", "\"correlation\":77"),
              event("cpu_op", "elsewhere", 8, 13, "990", "15")});
  REQUIRE(ours);
  CHECK(value(ours->tables[0], "bound_by", "host operators", "dur_ns") == 960'000);
  CHECK(value(ours->tables[0], "bound_by", "hand-over between threads, inferred", "dur_ns") ==
        100'000);  // 10 to 100, 1000 to 1010
  CHECK(value(ours->tables[0], "bound_by", "gap between host operators", "dur_ns") == -1);
  CHECK(value(ours->tables[0], "bound_by", "path", "dur_ns") == 1'060'000);
  CHECK(ours->notes.count("critical_path.inferred_hand_overs") == 2);
  CHECK(ours->notes.count("critical_path.coverage") == 0);
}

TEST_CASE("critical path: a thread inside an operator hands over too; a gap of Python's length stays the thread's") {
  const auto inside = answer("critical-path-analysis",
                             {op("outer", "0", "200"), op("inner", "20", "60"), op("backward", "100", "200", 11)});
  REQUIRE(inside);
  CHECK(value(inside->tables[0], "bound_by", "hand-over between threads, inferred", "dur_ns") == 20'000);
  CHECK(value(inside->tables[0], "bound_by", "path", "dur_ns") == 300'000);
  const auto python =
      answer("critical-path-analysis", {op("a", "0", "100"), op("b", "110", "100"), op("pin", "90", "15", 11)});
  REQUIRE(python);
  CHECK(value(python->tables[0], "bound_by", "gap between host operators", "dur_ns") == 10'000);
}

namespace {

// Threads of one process that take turns, two operators each: every operator but the first waits for another thread's.
int64_t looks_with_threads(int threads) {
  std::vector<std::string> events;
  for (int i = 0; i < 2 * threads; ++i)
    events.push_back(op("turn", std::to_string(1000 * i).c_str(), "900", 100 + i % threads));
  Folder folder;
  const Trace trace = read_with("kineto", {folder.add("t.json", trace_of(events))});
  const auto run = make_torch_run(trace, {});
  REQUIRE(run);
  const PathGraph graph = exact_path_graph(*run, *torch_rank(*run, run->parts[0]), {});
  CHECK(graph.path.size() == static_cast<size_t>(4 * threads));
  return graph.looks;
}

// Operators of one thread, each of which begins before the one before it ends.
int64_t looks_with_crossings(int count) {
  std::vector<std::string> events;
  for (int i = 0; i < count; ++i)
    events.push_back(op("cross", std::to_string(i).c_str(), std::to_string(count / 2).c_str()));
  Folder folder;
  const Trace trace = read_with("kineto", {folder.add("t.json", trace_of(events))});
  const auto run = make_torch_run(trace, {});
  REQUIRE(run);
  return exact_path_graph(*run, *torch_rank(*run, run->parts[0]), {}).looks;
}

}  // namespace

TEST_CASE("critical path: slices that cross cost no more than slices that nest") {
  const int64_t few = looks_with_crossings(200), more = looks_with_crossings(400), max = looks_with_crossings(800);
  CHECK(few > 0);
  CHECK(more <= 2 * few + 1);
  CHECK(max <= 2 * more + 1);
}

TEST_CASE("critical path: what hand-overs cost grows with the gaps, and not with the threads besides") {
  const int64_t few = looks_with_threads(50), more = looks_with_threads(100), max = looks_with_threads(200);
  CHECK(few > 0);
  CHECK(more <= 2 * few + 1);
  CHECK(max <= 2 * more + 1);
}

TEST_CASE("critical path: a note says so when nothing leads to the path's start") {
  const auto ours = answer("critical-path-analysis", {event("cpu_op", "a", 8, 1, "0", "10"), op("b", "90", "10")});
  REQUIRE(ours);
  CHECK(value(ours->tables[0], "bound_by", "path", "dur_ns") == 10'000);
  REQUIRE(ours->notes.count("critical_path.coverage") == 1);
  CHECK(ours->notes.items()[0].message.en.find("10 % of the wall time: it starts 0.09 ms into the window with \"b\"") !=
        std::string::npos);
}

namespace {

// Compute on stream 7, a collective on 20 to 395, and an optimizer on 7 at `start`; all launched by 15.
std::vector<std::string> reduced(const char* start) {
  return {call("cudaLaunchKernel", "0", "3", 1),  kernel("gemm", "10", "90", 1),
          call("cudaLaunchKernel", "5", "3", 2),  kernel("ncclDevKernel_AllReduce", "101", "294", 2, 20),
          call("cudaLaunchKernel", "12", "3", 3), kernel("adam", start, "100", 3)};
}

}  // namespace

TEST_CASE("critical path: without cuda_sync rows, work that starts as another stream's ends waited for it") {
  const auto ours = answer("critical-path-analysis", reduced("397"));
  REQUIRE(ours);
  CHECK(value(ours->tables[0], "bound_by", "communication", "dur_ns") == 294'000);
  CHECK(value(ours->tables[0], "bound_by", "computation", "dur_ns") == 190'000);
  CHECK(value(ours->tables[0], "bound_by", "wait of a stream, inferred", "dur_ns") == 3'000);  // 100 to 101, 395 to 397
  CHECK(value(ours->tables[0], "bound_by", "launch delay", "dur_ns") == 10'000);
  CHECK(value(ours->tables[0], "bound_by", "path", "dur_ns") == 497'000);
  CHECK(ours->notes.count("critical_path.inferred_stream_waits") == 2);

  const auto unknown = answer("critical-path-analysis", reduced("450"));  // nothing ends just before
  REQUIRE(unknown);
  CHECK(value(unknown->tables[0], "bound_by", "wait of a stream", "dur_ns") == 350'000);
  CHECK(value(unknown->tables[0], "bound_by", "gap between kernels", "dur_ns") == -1);
  CHECK(unknown->notes.count("critical_path.inferred_stream_waits") == 1);

  std::vector<std::string> recorded = reduced("397");  // that adam waits for something else is known: no guess
  recorded.push_back(call("cudaStreamWaitEvent", "14", "1", 9));
  recorded.push_back(event("cuda_sync", "Stream Wait Event", 0, 7, "14", "1",
                           R"("stream":7,"wait_on_stream":20,"wait_on_cuda_event_record_corr_id":8,"correlation":9)"));
  const auto known = answer("critical-path-analysis", recorded);
  REQUIRE(known);
  CHECK(value(known->tables[0], "bound_by", "gap between kernels", "dur_ns") == 297'000);
  CHECK(known->notes.count("critical_path.inferred_stream_waits") == 0);
}

TEST_CASE("critical path: a Stream Sync waits for its own stream, as long as the row says") {
  // The call is written as 5 us long, its wait as 95; the field wait_on_stream says nothing there.
  const auto ours = answer(
      "critical-path-analysis",
      {call("cudaLaunchKernel", "0", "3", 1), kernel("gemm", "10", "90", 1), call("cudaLaunchKernel", "4", "3", 2),
       kernel("copy", "12", "40", 2, 20), call("cudaStreamSynchronize", "9", "5", 3),
       event("cuda_sync", "Stream Sync", 0, 7, "10", "95", R"("stream":7,"wait_on_stream":20,"correlation":3)")});
  REQUIRE(ours);
  CHECK(value(ours->tables[0], "bound_by", "computation", "dur_ns") == 90'000);
  CHECK(value(ours->tables[0], "bound_by", "return of a blocking call", "dur_ns") == 5'000);
  CHECK(value(ours->tables[0], "bound_by", "wall", "dur_ns") == 105'000);
}

TEST_CASE("critical path: for a missing window the error names those that exist, while HTA's answer is empty") {
  const std::vector<std::string> events = {op("a", "0", "9"), event("user_annotation", "phase#3", 9, 10, "0", "4"),
                                           event("user_annotation", "phase#4", 9, 10, "5", "4"),
                                           event("user_annotation", "train", 9, 10, "1", "2")};
  const auto unknown = answer("critical-path-analysis", events, false, {{"annotation", "step"}});
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::kBadInput);
  CHECK(unknown.error().text().find("0 rows of rank 0 have \"step\" in the name") != std::string::npos);
  CHECK(unknown.error().hint == "annotations there: \"phase#3\", \"train\"");
  const auto beyond = answer("critical-path-analysis", events, false, {{"annotation", "phase"}, {"instance-id", "2"}});
  REQUIRE_FALSE(beyond);
  CHECK(beyond.error().code == ErrorCode::kBadInput);
  CHECK(beyond.error().text().find("2 rows of rank 0 have \"phase\" in the name: there is no instance 2") !=
        std::string::npos);
  const auto cut = answer("critical-path-analysis", events, false, {{"annotation", "phase"}, {"instance-id", "1:5"}});
  REQUIRE(cut);
  CHECK(cut->notes.count("critical_path.fewer_instances") == 1);
  const auto hta = answer("critical-path-analysis", events, true, {{"annotation", "step"}});
  REQUIRE(hta);
  for (const Table& table : hta->tables) CHECK(table.row_count() == 0);
  CHECK(hta->notes.count("critical_path.no_window") == 1);
  CHECK_FALSE(answer("critical-path-analysis", events, false, {{"instance-id", "2:1"}}));
}
