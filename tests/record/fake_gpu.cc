#include "fake_gpu.h"

#include <time.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace {

FakeGpu gpu;
std::mutex mutex;

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

struct Stream {
  int64_t end_ns = 0, last_event_ns = 0;
  bool made = false;
};
struct Event {
  int64_t at_ns = 0;
  bool odd = false, was_recorded = false;
};
struct Node {
  Event* event;  // nullptr: a kernel
  int64_t dur_ns;
  uint64_t* stamps = nullptr;  // where the kernel says when it began and ended
};
std::vector<Node> graph;
Stream default_stream, the_queue;
int64_t recorded = 0;

Stream& stream_of(void* handle) { return handle ? *static_cast<Stream*>(handle) : default_stream; }
Stream& queue_of(void* handle) { return gpu.one_queue ? the_queue : stream_of(handle); }

double device_ns(int64_t host_ns) {
  const double exact = gpu.offset_ns + static_cast<double>(host_ns) + static_cast<double>(host_ns) * gpu.ppm * 1e-6;
  const double ticks = std::floor(exact / gpu.tick_ns);
  return (gpu.ticks_wrap ? std::fmod(ticks, 4294967296.0) : ticks) * gpu.tick_ns;
}

int refused() {
  if (gpu.context_lost.load()) {
    ++gpu.after_loss;
    return 709;
  }
  return 0;
}

}  // namespace

extern "C" {

// For a program that cannot be changed, faults come from the environment.
FakeGpu* fake_gpu() {
  static const bool reported = [] {
    const auto number = [](const char* name) {
      const char* said = getenv(name);
      return said ? atof(said) : 0.0;
    };
    gpu.ppm = number("FAKE_GPU_PPM");
    if (const double tick = number("FAKE_GPU_TICK_NS"); tick > 0) gpu.tick_ns = tick;
    gpu.query_error = static_cast<int>(number("FAKE_GPU_QUERY_ERROR"));
    return true;
  }();
  (void)reported;
  return &gpu;
}
void fake_kernel(void* handle, int64_t dur_ns) {
  const std::lock_guard lock(mutex);
  if (gpu.capturing) return graph.push_back({nullptr, dur_ns});
  Stream& s = queue_of(handle);
  s.end_ns = std::max(now_ns() + gpu.latency_ns, s.end_ns) + dur_ns;
}
// A kernel that stores the device's clock at its begin and its end.
void fake_stamping_kernel(void* handle, uint64_t* stamps, int64_t dur_ns) {
  const std::lock_guard lock(mutex);
  if (gpu.capturing) return graph.push_back({nullptr, dur_ns, stamps});
  Stream& s = queue_of(handle);
  s.end_ns = std::max(now_ns() + gpu.latency_ns, s.end_ns);
  stamps[0] = static_cast<uint64_t>(device_ns(s.end_ns));
  s.end_ns += dur_ns;
  stamps[1] = static_cast<uint64_t>(device_ns(s.end_ns));
}
void fake_begin_capture() {
  const std::lock_guard lock(mutex);
  graph.clear();
  gpu.capturing = true;
}
void fake_launch(void* handle) {
  const std::lock_guard lock(mutex);
  Stream& s = queue_of(handle);
  s.end_ns = std::max(now_ns() + gpu.latency_ns, s.end_ns);
  for (const Node& node : graph) {
    if (node.stamps) node.stamps[0] = static_cast<uint64_t>(device_ns(s.end_ns));
    s.end_ns += node.dur_ns;
    if (node.stamps) node.stamps[1] = static_cast<uint64_t>(device_ns(s.end_ns));
    if (!node.event) continue;
    node.event->at_ns = stream_of(handle).last_event_ns = s.end_ns;
    node.event->was_recorded = true;
  }
}
int64_t fake_last(void* handle) {
  const std::lock_guard lock(mutex);
  return stream_of(handle).last_event_ns;
}
void* fake_stream() { return new Stream; }
void* fake_made_stream() { return new Stream{0, 0, true}; }

int fake_make_event(void** event) {
  if (const int error = refused()) return error;
  if (gpu.create_error) return gpu.create_error;
  ++gpu.creates;
  *event = new Event;
  return 0;
}
int fake_record(void* event, void* handle) {
  if (const int error = refused()) return error;
  if (gpu.record_error) return gpu.record_error;
  const std::lock_guard lock(mutex);
  ++gpu.records;
  Stream& s = queue_of(handle);
  s.end_ns = std::max(now_ns() + gpu.latency_ns + (s.made ? gpu.made_stream_latency_ns.load() : 0), s.end_ns);
  auto* e = static_cast<Event*>(event);
  e->at_ns = stream_of(handle).last_event_ns = s.end_ns;
  e->was_recorded = true;
  e->odd = gpu.swapped && ++recorded % 2 == 0;
  return 0;
}
int fake_record_in_graph(void* event, void*) {
  const std::lock_guard lock(mutex);
  graph.push_back({static_cast<Event*>(event), 0});
  return 0;
}
// 0, or 600 while the work is under way.
int fake_query(void* event) {
  if (const int error = refused()) return error;
  ++gpu.queries;
  if (gpu.query_error) return gpu.query_error;
  if (gpu.hang) return 600;
  const std::lock_guard lock(mutex);
  return now_ns() >= static_cast<Event*>(event)->at_ns ? 0 : 600;
}
int fake_elapsed(float* ms, void* from, void* to) {
  if (const int error = refused()) return error;
  if (gpu.elapsed_error) return gpu.elapsed_error;
  const std::lock_guard lock(mutex);
  const auto *a = static_cast<Event*>(from), *b = static_cast<Event*>(to);
  if (!a->was_recorded || !b->was_recorded) return 400;  // also of a node whose graph never ran
  *ms = static_cast<float>((device_ns(b->at_ns) - device_ns(a->at_ns) - (b->odd ? 1e9 : 0)) * 1e-6);
  return 0;
}
uint64_t fake_stamp(void* event) {
  const std::lock_guard lock(mutex);
  return static_cast<uint64_t>(device_ns(static_cast<Event*>(event)->at_ns) / 1000 / gpu.microseconds);
}
int fake_free(void* event) {
  delete static_cast<Event*>(event);
  return 0;
}
}
