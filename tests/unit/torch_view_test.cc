#include "profile/torch_view.h"

#include "profile/range_index.h"
#include "torch_traces.h"

using namespace stageline;

namespace {

TorchRank rows_of(const Trace& trace, bool hta, bool last = false) {
  auto run = make_torch_run(trace, {hta, last});
  REQUIRE(run);
  return *torch_rank(*run, run->parts[0]);
}

const TorchRow& named(const Trace& trace, const TorchRank& rank, std::string_view name) {
  for (const TorchRow& row : rank.rows)
    if (trace.names.text(row.name) == name) return row;
  FAIL("no row " << name);
  return rank.rows[0];
}

int count_named(const Trace& trace, const TorchRank& rank, std::string_view name) {
  int count = 0;
  for (const TorchRow& row : rank.rows) count += trace.names.text(row.name) == name;
  return count;
}

}  // namespace

TEST_CASE("F1: nanoseconds stay by default, HTA rounds starts up and ends down") {
  const Trace trace = torch_trace({torch_event("cpu_op", "a", 100, 1, "1000.250", "3.500"),
                                   torch_event("cpu_op", "b", 100, 1, "1010.100", "0.200")});
  const TorchRank exact = rows_of(trace, false), hta = rows_of(trace, true);
  CHECK(named(trace, exact, "a").dur_ns == 3500);
  CHECK(named(trace, exact, "b").dur_ns == 200);
  CHECK(named(trace, exact, "b").start_ns == 9850);
  CHECK(named(trace, hta, "a").dur_ns == 2000);   // [1001, 1003]
  CHECK(named(trace, hta, "b").dur_ns == -1000);  // [1011, 1010]
  CHECK(named(trace, hta, "b").start_ns == 10000);
}

TEST_CASE("whole microseconds are not rounded by HTA") {
  const Trace trace = torch_trace({torch_event("cpu_op", "a", 100, 1, "1000", "3.5")});
  CHECK(named(trace, rows_of(trace, true), "a").dur_ns == 3500);
}

TEST_CASE("HTA's rounding by whole numbers is that by doubles") {
  Part part;
  part.fractional_time = true;
  uint64_t random = 1;
  for (int k = 0; k < 200'000; ++k) {
    const auto draw = [&](int bits) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      return static_cast<int64_t>(random >> (64 - bits));
    };
    int64_t start = draw(1 + k % 53), dur = draw(1 + k % 47);
    if (k % 5 == 0) dur += 1000 - (start + dur) % 1000;  // an end in whole microseconds
    if (k % 7 == 0) start = -start;
    const double from = hta_raw_us(start), to = std::floor(from + hta_raw_us(dur));
    const int64_t start_ns = static_cast<int64_t>(std::ceil(from)) * 1000;
    const int64_t dur_ns = static_cast<int64_t>(to) * 1000 - start_ns;
    CAPTURE(start);
    CAPTURE(dur);
    hta_round(part, start, dur);
    REQUIRE(start == start_ns);
    REQUIRE(dur == dur_ns);
  }
}

TEST_CASE("F11: steps are the host's, device work follows its launch") {
  // The device runs step 1 while the host is in step 2, and its annotations lag too.
  const Trace trace = torch_trace(
      {step(1, "0", "100"), step(2, "100", "100"), step(3, "200", "100"), call("cudaLaunchKernel", "10", "5", 1),
       call("cudaLaunchKernel", "110", "5", 2), call("cudaLaunchKernel", "210", "5", 3), work("k1", "120", "60", 1),
       work("k2", "180", "60", 2), work("k3", "240", "10", 3),
       torch_event("gpu_user_annotation", "ProfilerStep#1", 0, 7, "120", "60", "\"External id\":1"),
       torch_event("gpu_user_annotation", "ProfilerStep#2", 0, 7, "180", "60", "\"External id\":2"),
       torch_event("gpu_user_annotation", "ProfilerStep#3", 0, 7, "240", "10", "\"External id\":3")});
  const TorchRank exact = rows_of(trace, false, true);
  CHECK(named(trace, exact, "k1").iteration == 1);
  CHECK(named(trace, exact, "k2").iteration == 2);
  CHECK(named(trace, exact, "k3").iteration == 3);
  // HTA takes the last row of the file that covers a time: the third launch lies in the device's step 2.
  CHECK(named(trace, rows_of(trace, true, true), "k3").iteration == 2);

  // F12: by default the last step leaves with its device rows; HTA cuts at the last device annotation.
  const TorchRank dropped = rows_of(trace, false);
  CHECK(count_named(trace, dropped, "k2") == 1);
  CHECK(count_named(trace, dropped, "k3") == 0);
  CHECK(count_named(trace, dropped, "ProfilerStep#2") == 2);
  CHECK(count_named(trace, dropped, "ProfilerStep#3") == 0);
  CHECK(count_named(trace, rows_of(trace, true), "k3") == 1);
  CHECK(ask(trace, "profiler-steps")[0].row_count() == 2);
  CHECK(ask(trace, "profiler-steps", {.hta = true})[0].row_count() == 3);
}

TEST_CASE("F14: a runtime and a driver call of one number do not double the kernel") {
  const Trace trace = torch_trace({step(1, "0", "100"), step(2, "100", "100"), call("cudaLaunchKernel", "10", "9", 1),
                                   torch_event("cuda_driver", "cuLaunchKernel", 100, 1, "12", "5", launch_args(1)),
                                   work("k", "30", "9", 1)});
  const TorchRank exact = rows_of(trace, false), hta = rows_of(trace, true);
  CHECK(count_named(trace, exact, "k") == 1);
  CHECK(count_named(trace, hta, "k") == 2);
  // The kernel's launch is the outer call; HTA's partner is the last in the file.
  const TorchRow& kernel = named(trace, exact, "k");
  CHECK(trace.names.text(exact.rows[kernel.partner].name) == "cudaLaunchKernel");
  CHECK(named(trace, hta, "k").partner_index == 3);
}

TEST_CASE("F13: a rank without steps keeps its rows") {
  const Folder folder;
  const std::string a = folder.add("a/rank0.json", torch_file({step(1, "0", "100"), step(2, "100", "100")}, 0));
  const std::string b = folder.add("a/rank1.json", torch_file({torch_event("cpu_op", "x", 100, 1, "50", "5")}, 1));
  const Trace trace = read_with("kineto", {a, b});
  for (const bool hta : {false, true}) {
    auto run = make_torch_run(trace, {hta, false});
    REQUIRE(run);
    CHECK(torch_rank(*run, 1)->rows.size() == (hta ? 0 : 1));
  }
}

TEST_CASE("F15: work on stream 0 belongs to the step of its launch") {
  const Trace trace =
      torch_trace({step(1, "0", "100"), call("hipLaunchKernel", "10", "5", 1), work("k", "30", "9", 1, 0)});
  CHECK(named(trace, rows_of(trace, false), "k").iteration == 1);
  CHECK(named(trace, rows_of(trace, true), "k").iteration == kNoIteration);
}

TEST_CASE("CUPTI's number for no stream is a stream of HTA's") {
  const Trace trace = torch_trace(
      {call("cudaDeviceSynchronize", "10", "50", 1),
       torch_event("cuda_sync", "Context Sync", 0, 1, "10", "50", "\"stream\":4294967295,\"correlation\":1")});
  CHECK(named(trace, rows_of(trace, true), "Context Sync").stream == 4294967295);
  CHECK(named(trace, rows_of(trace, true), "Context Sync").on_device);
  CHECK(!named(trace, rows_of(trace, false), "Context Sync").on_device);
}

TEST_CASE("MTIA keeps rows between its first and last step") {
  const auto mtia_call = [](const char* name, const char* ts, int correlation) {
    return torch_event("mtia_runtime", name, 100, 1, ts, "2", launch_args(correlation));
  };
  const char* kJob = "runFunction - job_prep_and_submit_for_execution";
  const Trace trace =
      torch_trace({torch_event("cpu_op", "before", 100, 1, "0", "5"), step(1, "10", "50"), step(2, "60", "50"),
                   torch_event("cpu_op", "within", 100, 1, "70", "5"),
                   torch_event("cpu_op", "after", 100, 1, "200", "5"), mtia_call(kJob, "80", 1),
                   mtia_call(kJob, "210", 2), torch_event("mtia_ccp_events", "k1", 0, 3, "120", "5", launch_args(1, 3)),
                   torch_event("mtia_ccp_events", "k2", 0, 3, "220", "5", launch_args(2, 3)),
                   torch_event("mtia_ccp_events", "dma copy", 0, 9, "90", "5"),
                   torch_event("mtia_ccp_events", "dma late", 0, 9, "190", "5")});
  const TorchRank hta = rows_of(trace, true);
  for (const char* kept : {"within", "k1", "dma copy"}) CHECK_MESSAGE(count_named(trace, hta, kept) == 1, kept);
  for (const char* lost : {"before", "after", "k2", "dma late"})
    CHECK_MESSAGE(count_named(trace, hta, lost) == 0, lost);
  CHECK(named(trace, hta, "dma copy").stream == 9);
}

TEST_CASE("range index: the last range that an interval touches") {
  const std::vector<Interval> ranges = {{0, 100}, {10, 40}, {50, 90}, {20, 30}, {60, 60}};
  const RangeIndex index(ranges);
  const auto slow = [&](int64_t start, int64_t end) {
    int32_t best = -1;
    for (size_t i = 0; i < ranges.size(); ++i)
      if (ranges[i].start < end && start < ranges[i].end) best = static_cast<int32_t>(i);
    return best;
  };
  for (int64_t start = -3; start < 104; ++start)
    for (int64_t end = start; end < 104; ++end)
      if (index.last_touched(start, end) != slow(start, end)) FAIL(start << " " << end);
  CHECK(RangeIndex({}).last_touched(0, 5) == -1);
}

TEST_CASE("F22: ranks of minified files are told apart, HTA takes them for one") {
  const Folder folder;
  std::vector<std::string> paths;
  for (int rank = 2; rank < 4; ++rank) {
    std::string text = torch_file({torch_event("cpu_op", "x" + std::to_string(rank), 100, 1, "50", "5")}, rank);
    text.replace(text.find("\"rank\": "), 8, "\"rank\":");
    paths.push_back(folder.add("t" + std::to_string(rank) + ".json", text));
  }
  const Trace trace = read_with("kineto", paths);
  CHECK(trace.parts[1].rank == 3);
  CHECK(make_torch_run(trace, {false, false})->parts.size() == 2);
  const auto hta = make_torch_run(trace, {true, false});
  REQUIRE(hta);
  REQUIRE(hta->parts.size() == 1);
  CHECK(torch_rank(*hta, hta->parts[0])->rank == 0);
  CHECK(count_named(trace, *torch_rank(*hta, hta->parts[0]), "x3") == 1);
}

TEST_CASE("a slice takes the memory that the model documents, at most 48 bytes") {
  const Slices s;
  const auto each = [](const auto& column) { return sizeof(column[0]); };
  const size_t bytes = each(s.start_ns) + each(s.dur_ns) + each(s.name_id) + each(s.file_index) + each(s.parent) +
                       each(s.correlation) + each(s.partner) + each(s.args_offset_low) + each(s.args_offset_high) +
                       each(s.stream_id) + each(s.step) + each(s.category_id) + each(s.kernel_class);
  CHECK(bytes == kBytesPerSlice);
  CHECK(sizeof(Slices) == 13 * sizeof(std::vector<int64_t>));  // a new column must be counted above
  CHECK(kBytesPerSlice <= 48);
}

TEST_CASE("steps of devices: from the last end of one to that of the next") {
  // The host launches two steps at once and blocks in the third; the fourth is left out.
  const Trace trace = torch_trace({step(1, "0", "10"), step(2, "10", "10"), step(3, "20", "90"), step(4, "110", "5"),
                                   call("cudaLaunchKernel", "1", "1", 1), call("cudaLaunchKernel", "11", "1", 2),
                                   call("cudaLaunchKernel", "21", "1", 3), work("a", "5", "30", 1),
                                   work("b", "35", "31", 2), work("c", "66", "30", 3)});
  const Table table = ask(trace, "profiler-steps")[0];
  REQUIRE(table.row_count() == 3);
  const auto column = [&](const char* name, size_t row) {
    return table.integer(row, static_cast<size_t>(table.column_index(name)));
  };
  CHECK(column("device_start_ns", 1) == 35'000);
  CHECK(column("device_end_ns", 1) == 66'000);
  CHECK(column("device_ns", 0) == 30'000);
  CHECK(column("device_ns", 1) == 31'000);
  CHECK(column("device_ns", 2) == 30'000);
  CHECK(column("dur_ns", 2) == 90'000);
}
