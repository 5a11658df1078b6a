// A device that is not there: streams in virtual time behind the drivers' own names, with known truth and faults to
// order.
//
// A stream is the moment its last work ends. A kernel of d ns moves it to max(now + latency, end) + d; an event copies
// it; a query compares it with now. The device's clock runs off: offset + (1 + ppm / 10⁶) · t, in ticks. Distances
// between events are float milliseconds, as in the real drivers. No threads. Times are CLOCK_MONOTONIC_RAW.
#pragma once

#include <atomic>
#include <cstdint>

struct FakeGpu {
  // The clock.
  double offset_ns = 0, ppm = 0, tick_ns = 32;
  int64_t latency_ns = 3000;
  bool one_queue = false;   // all streams share one hardware queue
  bool ticks_wrap = false;  // of the device's counter: 32 bits of ticks
  double microseconds = 1;  // ACL: what one unit of a stamp is
  // Of streams that the driver's own call made (the recorder's): how much later their work begins.
  std::atomic<int64_t> made_stream_latency_ns{0};
  // Faults: error numbers, 0 for none.
  int record_error = 0, query_error = 0, elapsed_error = 0, create_error = 0, context_error = 0, capturing_error = 0;
  std::atomic<bool> capturing{false}, hang{false},
      swapped{false};            // swapped: a range's second event reads earlier than its first
  const char* hidden = nullptr;  // a function that the driver does not have
  // Counters of events.
  std::atomic<int64_t> records{0}, queries{0}, creates{0}, after_loss{0};
  std::atomic<int64_t> broken_captures{0};  // by queries of threads that did not say that they break none
  std::atomic<bool> context_lost{false};
};

// Functions of the loaded fake library; resolved by dlsym.
using FakeGpuFunction = FakeGpu* (*)();
using FakeKernelFunction = void (*)(void* stream, int64_t dur_ns);
using FakeLastFunction = int64_t (*)(void* stream);  // true host time of the stream's last event
using FakeStreamFunction = void* (*)();
// While `capturing`, kernels and event nodes go to the one graph there is; this runs it.
using FakeLaunchFunction = void (*)(void* stream);
