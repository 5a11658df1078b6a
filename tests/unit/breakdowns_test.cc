#include "model/slice_facts.h"
#include "profile/name_totals.h"
#include "torch_traces.h"

using namespace stageline;

TEST_CASE("F5: waiting counts as idle, while HTA counts sync rows as work") {
  const Trace trace = torch_trace({work("gemm", "100", "10", 1), work("gemm", "990", "10", 2),
                                   work("Stream Sync", "110", "880", 3, 7, "cuda_sync")});
  const auto exact = ask(trace, "temporal-breakdown"), hta = ask(trace, "temporal-breakdown", {.hta = true});
  CHECK(cell(exact[0], "span_ns") == "900000");
  CHECK(cell(exact[0], "idle_ns") == "880000");
  CHECK(cell(hta[0], "idle_time(us)") == "0");
  CHECK(cell(hta[0], "non_compute_time(us)") == "880");
}

TEST_CASE("F6: a host operator that has a stream is not a kernel") {
  const Trace trace = torch_trace({torch_event("cpu_op", "triton_add", 100, 1, "0", "50", "\"stream\":7"),
                                   call("cuLaunchKernel", "20", "5", 1), work("triton_add", "100", "10", 1)});
  CHECK(cell(ask(trace, "temporal-breakdown")[0], "compute_ns") == "10000");
  CHECK(cell(ask(trace, "temporal-breakdown", {.hta = true})[0], "compute_time(us)") == "60");
}

TEST_CASE("F7: communication is decided by what a kernel does, not by its name") {
  const Trace trace = torch_trace({work("void deep_ep::internode::dispatch<8>(int)", "0", "10", 1),
                                   work("gemm", "5", "10", 2, 8), work("__amd_rocclr_copyBuffer", "20", "4", 3)});
  const auto exact = ask(trace, "comm-comp-overlap");
  CHECK(cell(exact[0], "communication_ns") == "10000");
  CHECK(cell(exact[0], "overlap_ns") == "5000");
  CHECK(cell(exact[0], "exposed_ns") == "5000");
  CHECK(cell(exact[0], "overlap_share") == "0.5");
  CHECK(cell(ask(trace, "comm-comp-overlap", {.hta = true})[0], "comp_comm_overlap_pctg").empty());
  const auto types = ask(trace, "gpu-kernel-breakdown");
  const Table& table = table_of(types, "kernel-types");
  CHECK(cell(table, "time_ns", "kernel_type", "MEMORY") == "4000");
  CHECK(cell(table, "time_ns", "kernel_type", "COMPUTATION overlapping COMMUNICATION") == "5000");
  const auto temporal = ask(trace, "temporal-breakdown");
  CHECK(cell(temporal[0], "exposed_communication_ns") == "5000");
  CHECK(cell(temporal[0], "exposed_memory_ns") == "4000");
}

TEST_CASE("F3, F4: folding keeps statistics of calls and cuts by share of time") {
  std::vector<std::string> events;
  int at = 0;
  const auto add = [&](const char* name, int count, int dur) {
    for (int i = 0; i < count; ++i, at += 100)
      events.push_back(work(name, std::to_string(at), std::to_string(dur), 1000 + at));
  };
  add("a", 4, 50);  // 200 of 260
  add("b", 2, 15);
  add("c", 2, 10);
  add("d", 1, 10);
  const Trace trace = torch_trace(events);
  const AskOptions three = {.options = {{"num-kernels", "3"}}};
  const auto exact = ask(trace, "gpu-kernel-breakdown", three);
  const Table& kernels = table_of(exact, "kernels");
  CHECK(cell(kernels, "mean_ns", "name", "a") == "50000");
  CHECK(cell(kernels, "count", "name", "a") == "4");
  CHECK(cell(kernels, "sum_ns", "name", "b") == "30000");  // 200 of 260 is less than 80 %
  CHECK(cell(kernels, "count", "name", "others (2)") == "3");
  CHECK(cell(kernels, "max_ns", "name", "others (2)") == "10000");
  AskOptions hta = three;
  hta.hta = true;
  const auto theirs = ask(trace, "gpu-kernel-breakdown", hta);
  CHECK(cell(table_of(theirs, "kernels"), "mean (us)", "name", "a") == "200");
}

TEST_CASE("statistics of parts add up to those of the whole") {
  DurationStats a, b, all;
  for (const int64_t ns : {5, 9, 1'000'000'007, 12}) {
    (ns < 10 ? a : b).add(ns);
    all.add(ns);
  }
  a.merge(b);
  CHECK(a.count == all.count);
  CHECK(a.sum_ns == all.sum_ns);
  CHECK(a.min_ns == 5);
  CHECK(a.std_ns() == doctest::Approx(all.std_ns()));
}

TEST_CASE("F18: a device is idle when none of its streams works") {
  // Stream 7: a long kernel covers a short one; stream 8 fills half of the gap after them.
  const Trace trace = torch_trace({call("cudaLaunchKernel", "0", "2", 1), call("cudaLaunchKernel", "3", "2", 2),
                                   call("cudaLaunchKernel", "6", "2", 3), call("cudaLaunchKernel", "180", "2", 4),
                                   work("long", "10", "90", 1), work("short", "20", "10", 2),
                                   work("other", "100", "50", 3, 8), work("late", "200", "10", 4)});
  const auto exact = ask(trace, "idle-time-breakdown"), hta = ask(trace, "idle-time-breakdown", {.hta = true});
  const Table& device = table_of(exact, "device-idle");
  CHECK(cell(device, "idle_ns", "cause", "launch") == "32000");    // from 150 until the call returned at 182
  CHECK(cell(device, "idle_ns", "cause", "kernel") == "18000");    // until 200
  CHECK(cell(device, "idle_share", "cause", "launch") == "0.16");  // of 10 to 210
  CHECK(cell(table_of(exact, "idle-time"), "idle_ns", "cause", "launch") == "82000");
  CHECK(cell(hta[0], "idle_time", "idle_category", "kernel_wait") == "-80");
  CHECK(cell(hta[0], "idle_time", "idle_category", "host_wait") == "170");
}

TEST_CASE("F8: the delay of consecutive kernels has a unit") {
  const Trace trace = torch_trace({call("cudaLaunchKernel", "0", "2", 1), call("cudaLaunchKernel", "3", "2", 2),
                                   work("a", "10", "10", 1), work("b", "40", "10", 2)});
  const auto cause = [&](const char* delay) {
    const auto tables =
        ask(trace, "idle-time-breakdown", {.hta = true, .options = {{"consecutive-kernel-delay", delay}}});
    return cell(tables[0], "idle_category");
  };
  CHECK(cause("30") == "kernel_wait");
  CHECK(cause("0.02ms") == "other");
  CHECK(cause("30ns") == "other");
}

TEST_CASE("F16, F17: launches of every call count, and a graph's launch counts once") {
  const Trace trace = torch_trace({call("hipGraphLaunch", "0", "5", 1), call("cuLaunchKernelExC", "10", "60", 2),
                                   work("g1", "20", "3", 1), work("g2", "400", "3", 1), work("x", "71", "9", 2),
                                   work("lost", "500", "1", 77)});
  const auto exact = ask(trace, "cuda-kernel-launch-stats"),
             hta = ask(trace, "cuda-kernel-launch-stats", {.hta = true});
  const Table& outliers = table_of(exact, "outliers");
  CHECK(cell(outliers, "events") == "2");
  CHECK(cell(outliers, "runtime_outliers") == "1");
  CHECK(cell(outliers, "launch_delay_outliers") == "0");  // the graph's second kernel waits for the first
  CHECK(cell(outliers, "orphans") == "1");
  CHECK(table_of(exact, "launches").row_count() == 3);
  CHECK(cell(table_of(exact, "launches"), "work_index", "work", "g2") == "1");
  CHECK(cell(table_of(exact, "launch-delay-histogram"), "launches", "from_ns", "10000") == "1");
  CHECK(cell(table_of(hta, "outliers"), "events") == "0");
}

TEST_CASE("ranges of annotations: the launch decides, and how much of a range is work") {
  const Trace trace =
      torch_trace({torch_event("user_annotation", "outer", 100, 1, "0", "50"),
                   torch_event("user_annotation", "inner", 100, 1, "5", "10"), call("cudaLaunchKernel", "7", "2", 1),
                   call("cudaLaunchKernel", "20", "2", 2), call("cudaLaunchKernel", "60", "2", 3),
                   work("k1", "10.5", "4", 1), work("k2", "30", "5", 2), work("k3", "70", "5", 3),
                   torch_event("gpu_user_annotation", "outer", 0, 7, "10.5", "24.5")});
  const auto tables = ask(trace, "gpu-kernels-with-user-annotations");
  const Table& kernels = table_of(tables, "kernels");
  CHECK(cell(kernels, "annotation", "name", "k1") == "inner");
  CHECK(cell(kernels, "annotation_path", "name", "k1") == "outer / inner");
  CHECK(cell(kernels, "annotation", "name", "k2") == "outer");
  CHECK(cell(kernels, "annotation", "name", "k3").empty());
  CHECK(cell(table_of(tables, "work-by-annotation"), "kernel_ns", "annotation", "inner") == "4000");
  const auto ranges = ask(trace, "gpu-user-annotation-breakdown");
  CHECK(cell(ranges[0], "sum_ns", "name", "outer") == "24500");
  CHECK(cell(ranges[0], "busy_ns", "name", "outer") == "9000");
}

TEST_CASE("tables with a row per event stay out of the report") {
  const Trace trace = torch_trace({call("cudaLaunchKernel", "0", "5", 1), work("k", "20", "3", 1)});
  AnalysisInput input;
  input.trace = &trace;
  input.for_report = true;
  for (const char* name : {"cuda-kernel-launch-stats", "gpu-kernels-with-user-annotations"}) {
    const auto result = find_analysis(name)->run(input);
    REQUIRE(result);
    for (const Table& table : result->tables) CHECK(table.name() != "launches");
    for (const Table& table : result->tables) CHECK(table.name() != "kernels");
  }
  CHECK(!find_analysis("events")->in_report);
}

TEST_CASE("events and symbols of both modes") {
  const Trace trace = torch_trace({call("cudaMemcpyAsync", "1.5", "5", 1),
                                   torch_event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 0, 7, "20", "3",
                                               launch_args(1, 7) + ",\"bytes\":64,\"memory bandwidth (GB/s)\":2.5")});
  const auto exact = ask(trace, "events"), hta = ask(trace, "events", {.hta = true});
  const Table& rows = table_of(exact, "events");
  CHECK(cell(rows, "size_bytes", "category", "gpu_memcpy") == "64");
  CHECK(cell(rows, "partner_index", "category", "gpu_memcpy") == "0");
  CHECK(cell(rows, "start_ns", "category", "gpu_memcpy") == "18500");
  CHECK(cell(table_of(hta, "events"), "end", "cat", "gpu_memcpy") == "23");
  CHECK(cell(table_of(hta, "events"), "ts", "cat", "gpu_memcpy") == "18");
  CHECK(cell(table_of(exact, "symbols"), "kernel_class", "category", "gpu_memcpy") == "MEMORY");
  CHECK(cell(table_of(hta, "symbols"), "kernel_type_by_name", "symbol", "gpu_memcpy") == "COMPUTATION");
}
