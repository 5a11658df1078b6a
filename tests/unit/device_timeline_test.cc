// Who owns the idle time of devices, and what a replay says of it.
#include "profile/device_timeline.h"

#include <doctest/doctest.h>

#include <numeric>

#include "profile/idle_gaps.h"
#include "profile/timeline_replay.h"
#include "torch_traces.h"

using namespace stageline;

namespace {

std::string micros(int v) { return std::to_string(v); }
std::string slice(const std::string& cat, const std::string& name, int ts, int dur) {
  return torch_event(cat, name, 100, 1, micros(ts), micros(dur));
}
std::string launch(int ts, int dur, int correlation) {
  return call("cudaLaunchKernel", micros(ts), micros(dur), correlation);
}
std::string kernel(int ts, int dur, int correlation) { return work("gemm", micros(ts), micros(dur), correlation); }

DeviceTimeline timeline_of(const Trace& trace) { return device_timeline(trace, trace.parts[0]); }
int64_t idle_us(const DeviceTimeline& t, IdleCause owner) { return t.idle_ns[owner] / 1000; }
int64_t accounted_ns(const DeviceTimeline& t) {
  return t.compute_ns + t.exposed_comm_ns + t.exposed_memory_ns + t.other_work_ns + t.all_idle_ns();
}
// Without all host time of one owner.
int64_t without_us(const DeviceTimeline& t, IdleCause owner) {
  TakenOut out;
  out.keys.assign(t.idle_of_key.size(), false);
  for (uint32_t n = 0; n < t.nodes.size(); ++n) out.keys[owner_key(n, owner)] = true;
  return replayed_ns(t, out) / 1000;
}

// The lag between a launch and its kernel is the replay's own: a few microseconds either way.
bool near_us(int64_t a, int64_t b) { return a - b <= 5 && b - a <= 5; }

}  // namespace

TEST_CASE("device timeline: a launch that does not return owns the gap, to its end") {
  const Trace trace = torch_trace({launch(0, 5, 1), kernel(5, 100, 1), slice("cpu_op", "aten::mm", 20, 5020),
                                   launch(30, 5000, 2), kernel(5028, 100, 2)});
  const DeviceTimeline t = timeline_of(trace);
  CHECK(t.linked);
  CHECK(t.window_ns() == 5'123'000);
  CHECK(accounted_ns(t) == t.window_ns());
  CHECK(idle_us(t, IdleCause::kBlocked) == 4923);  // from 105 to the kernel, which starts before the call returns
  CHECK(t.idle_ns[IdleCause::kStream] == 0);
  CHECK(replayed_ns(t, {}) == t.window_ns());
  CHECK(near_us(without_us(t, IdleCause::kBlocked), 5123 - 4923));
}

TEST_CASE("device timeline: a gap is cut where the launch call returns") {
  const Trace trace = torch_trace({launch(0, 5, 1), kernel(5, 100, 1), launch(106, 11, 2), kernel(2403, 100, 2)});
  const DeviceTimeline t = timeline_of(trace);
  REQUIRE(t.gaps.size() == 1);
  const IdleTimes times = idle_times(t, t.gaps[0]);
  CHECK(times[IdleCause::kDispatch] == 12'000);  // from 105 until the call returns at 117
  CHECK(times[IdleCause::kStream] == 2'286'000);
  CHECK(main_cause(times) == IdleCause::kStream);
  CHECK(times == t.idle_ns);
}

TEST_CASE("device timeline: what the driver does within a long call is time of that call") {
  const Trace trace =
      torch_trace({launch(0, 5, 1), kernel(5, 100, 1), launch(30, 5000, 2),
                   slice("overhead", "Runtime Triggered Module Loading", 40, 4900), kernel(5028, 100, 2)});
  const DeviceTimeline t = timeline_of(trace);
  CHECK(accounted_ns(t) == t.window_ns());
  CHECK(idle_us(t, IdleCause::kBlocked) == 4923);
  CHECK(idle_us(t, IdleCause::kDispatch) == 0);
}

TEST_CASE("device timeline: work between launches belongs to the innermost slice, and hides behind queued work") {
  const Trace trace =
      torch_trace({launch(0, 5, 1), kernel(5, 1000, 1), slice("python_function", "train.py(3): log", 10, 1600),
                   launch(1700, 5, 2), kernel(1705, 100, 2)});
  const DeviceTimeline t = timeline_of(trace);
  CHECK(accounted_ns(t) == t.window_ns());
  CHECK(idle_us(t, IdleCause::kWork) == 1610 - 1005);
  CHECK(idle_us(t, IdleCause::kUnseen) == 1700 - 1610);
  // If it is launched at 100 instead of 1700, the second kernel follows the first: this saves 605 and the 90 after it,
  // not all 1600.
  CHECK(near_us(without_us(t, IdleCause::kWork), t.window_ns() / 1000 - 695));
}

TEST_CASE("device timeline: a wait that runs the device dry is one way to lose the time after it") {
  const Trace trace =
      torch_trace({launch(0, 5, 1), kernel(5, 1000, 1), call("cudaStreamSynchronize", "10", "998", 9),
                   slice("cpu_op", "aten::topk", 1010, 400), launch(1420, 5, 2), kernel(1425, 1000, 2)});
  const DeviceTimeline t = timeline_of(trace);
  REQUIRE(t.drained.size() >= 1);
  TakenOut out;
  out.wait_nodes.assign(t.nodes.size(), false);
  out.wait_nodes[t.drained[0].wait_node] = true;
  CHECK(trace.names.text(t.nodes[t.drained[0].wait_node].name) == "cudaStreamSynchronize");
  CHECK(near_us(replayed_ns(t, out) / 1000, 2005));  // the second kernel was launched in time
}

TEST_CASE("device timeline: calls that allocate, collectors and loaders are told by what encloses them") {
  const Trace trace = torch_trace(
      {launch(0, 5, 1), kernel(5, 10, 1), slice("user_annotation", "enumerate(DataLoader)#_It.__next__", 20, 500),
       slice("cuda_runtime", "cudaHostAlloc", 30, 400), slice("cuda_runtime", "cudaMalloc", 600, 300),
       slice("python_function", "<built-in function collect>", 1000, 700), launch(1800, 5, 2), kernel(1805, 10, 2)});
  const DeviceTimeline t = timeline_of(trace);
  CHECK(idle_us(t, IdleCause::kInput) == 500);  // what it allocates is for the input
  CHECK(idle_us(t, IdleCause::kAllocator) == 300);
  CHECK(idle_us(t, IdleCause::kCollector) == 700);
  CHECK(accounted_ns(t) == t.window_ns());
}

TEST_CASE("device timeline: kernels of graphs are not short for their launch, those launched alone may be") {
  std::vector<std::string> graph = {launch(0, 60, 1)}, alone;
  for (int i = 0; i < 5; ++i) graph.push_back(kernel(65 + 11 * i, 10, 1));
  for (int i = 0; i < 5; ++i) {
    alone.push_back(launch(12 * i, 11, i + 1));
    alone.push_back(kernel(70 + 4 * i, 3, i + 1));
  }
  const Trace graphs = torch_trace(graph), singles = torch_trace(alone);
  const DeviceTimeline g = timeline_of(graphs), s = timeline_of(singles);
  CHECK(std::accumulate(g.short_kernel_count.begin(), g.short_kernel_count.end(), int64_t{0}) == 0);
  CHECK(std::accumulate(s.short_kernel_count.begin(), s.short_kernel_count.end(), int64_t{0}) == 5);
  CHECK(std::accumulate(s.short_pauses_ns.begin(), s.short_pauses_ns.end(), int64_t{0}) == 4000);
}

TEST_CASE("device timeline: a send follows the send before it while a receive of its lane goes on") {
  const auto message = [](int ts, int dur, int correlation) {
    return torch_event("kernel", "ncclDevKernel_SendRecv", 0, 20, micros(ts), micros(dur),
                       "\"device\":0,\"stream\":20,\"correlation\":" + std::to_string(correlation));
  };
  const Trace trace = torch_trace({launch(0, 5, 1), launch(6, 5, 2), launch(12, 5, 3), message(100, 400, 1),
                                   message(450, 900, 2), message(501, 300, 3)});
  const DeviceTimeline t = timeline_of(trace);
  REQUIRE(t.device.size() == 3);
  CHECK(t.device[1].before == DeviceTimeline::kNone);  // it did not wait for the send
  CHECK(t.device[2].before == 0);
  TakenOut out;
  out.device_ns = {100'000, -1, -1};  // the first send is 300 µs shorter, and so the second one ends that much earlier
  CHECK(near_us(replayed_ns(t, out) / 1000, replayed_ns(t, {}) / 1000));
  out.device_ns = {100'000, 0, -1};
  CHECK(near_us(replayed_ns(t, out) / 1000, 501 - 100));  // the window begins with the first send
}

TEST_CASE("device timeline: a stream that waits for another starts when that is done, and so does the replay") {
  const Trace trace = torch_trace({call("cudaMemcpyAsync", "0", "5", 1),
                                   torch_event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, 24, "5", "900",
                                               "\"device\":0,\"stream\":24,\"correlation\":1,\"bytes\":4096"),
                                   launch(10, 5, 2), kernel(907, 100, 2)});
  const DeviceTimeline t = timeline_of(trace);
  REQUIRE(t.device.size() == 2);
  CHECK(t.device[1].other == 0);
  TakenOut out;
  out.device_ns = {0, -1};
  CHECK(near_us(replayed_ns(t, out) / 1000, 107));  // 2 after its launch at 10, and 100 long; from 5
}

TEST_CASE("device timeline: the time between two recordings is in no sum, what a step of either does is") {
  Trace trace = torch_trace({slice("user_annotation", "ProfilerStep#1", 0, 200), launch(10, 5, 1), kernel(20, 100, 1),
                             slice("user_annotation", "ProfilerStep#2", 90'000, 400),
                             slice("cpu_op", "aten::mul", 90'000, 290), launch(90'300, 5, 2), kernel(90'310, 100, 2)});
  const DeviceTimeline joined = timeline_of(trace);
  CHECK(joined.window_ns() == 90'410'000);
  Part& part = trace.parts[0];
  part.later_recordings_ns = {joined.start_ns + 80'000'000};
  CHECK(part.recorded_anew(joined.start_ns, joined.end_ns));
  CHECK_FALSE(part.recorded_anew(joined.start_ns + 80'000'000, joined.end_ns));
  const DeviceTimeline t = timeline_of(trace);
  CHECK(t.window_ns() == 200'000 + 410'000);
  CHECK(accounted_ns(t) == t.window_ns());
  CHECK(replayed_ns(t, {}) == t.window_ns());
  // The multiplication stands before the launch; the first recording loses nothing by it.
  CHECK(idle_us(t, IdleCause::kWork) == 290);
  CHECK(near_us(without_us(t, IdleCause::kWork), 610 - 290));
}

TEST_CASE("device timeline: ranks that are replayed together leave a collective when the last has come") {
  // Rank 0 computes for 300 µs, rank 1 for 100; both leave the collective at 420, and compute for 50 more.
  const auto rank = [](int computes) {
    return torch_trace({launch(0, 5, 1), kernel(10, computes, 1), launch(6, 5, 2),
                        work("ncclDevKernel_AllReduce", micros(11 + computes), micros(409 - computes), 2),
                        launch(12, 5, 3), kernel(421, 50, 3)});
  };
  const Trace slow = rank(300), fast = rank(100);
  const std::vector<DeviceTimeline> t{timeline_of(slow), timeline_of(fast)};
  const std::vector<Meeting> meetings{{{{0, 1}, {1, 1}}}};
  std::vector<TakenOut> out(2);
  CHECK(replayed_together(t, out, meetings) == std::vector<int64_t>{t[0].window_ns(), t[1].window_ns()});
  out[0].device_ns = {100'000, -1, -1};  // as fast as the other: both save what they were apart
  CHECK(replayed_together(t, out, meetings) ==
        std::vector<int64_t>{t[0].window_ns() - 200'000, t[1].window_ns() - 200'000});
  out[0].device_ns = {50'000, -1, -1};  // it now waits for the other
  CHECK(replayed_together(t, out, meetings) ==
        std::vector<int64_t>{t[0].window_ns() - 200'000, t[1].window_ns() - 200'000});
  out[0].device_ns.clear();
  CHECK(replayed_together(t, out, meetings, 0)[1] == t[1].window_ns() - 200'000);  // rank 1 does not wait for rank 0
  CHECK(replayed_together(t, out, meetings, 1)[0] == t[0].window_ns());            // which did not wait anyway
  const std::vector<Meeting> circle{{{{0, 1}, {1, 2}}},
                                    {{{0, 2}, {1, 1}}}};  // each waits for the later work of the other
  CHECK(replayed_together(t, out, circle).empty());
}

TEST_CASE("device timeline: a host that shows nothing until its device is done waits for it at the end of a step") {
  const auto run = [](int lasts) {
    return torch_trace({slice("user_annotation", "ProfilerStep#1", 0, 500), launch(5, 5, 1), kernel(15, lasts, 1),
                        slice("user_annotation", "ProfilerStep#2", 500, 500), launch(505, 5, 2), kernel(515, 300, 2)});
  };
  const Trace trace = run(470);
  const std::vector<DeviceTimeline> t{timeline_of(trace)};
  std::vector<TakenOut> out(1);
  CHECK(replayed_together(t, out, {}) == std::vector<int64_t>{t[0].window_ns()});
  out[0].device_ns = {370'000, -1};
  CHECK(replayed_together(t, out, {}) == std::vector<int64_t>{t[0].window_ns() - 100'000});
}

TEST_CASE("device timeline: communication needs the computation launched before it, unless it is prefetched") {
  // Two gradients, each computed and then reduced. The second waits for the reduction of the first.
  const auto run = [](int reduces, int second) {
    return timeline_of(torch_trace(
        {launch(0, 2, 1), kernel(10, 100, 1), launch(3, 2, 2), work("ncclDevKernel_A", "112", micros(reduces), 2, 20),
         launch(6, 2, 3), kernel(111, 100, 3), launch(9, 2, 4), work("ncclDevKernel_A", micros(second), "50", 4, 20)}));
  };
  const auto needs = [](const DeviceTimeline& t) {
    std::vector<int32_t> of;
    for (const DeviceTimeline::DeviceItem& item : t.device) of.push_back(item.needs);
    return of;
  };
  const DeviceTimeline t = run(300, 413);
  CHECK(needs(t) == std::vector<int32_t>{-1, -1, 0, 1});
  TakenOut out;
  out.device_ns = {-1, -1, 10'000, -1};  // the first reduction ends at 122, the second gradient at 211
  CHECK(replayed_ns(t, out) == (212 + 50 - 10) * 1000);
  CHECK(needs(run(30, 150)) == std::vector<int32_t>{-1, -1, -1, -1});
}
