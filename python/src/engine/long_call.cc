#include "long_call.h"

#include <pthread.h>

#include <atomic>
#include <chrono>

namespace stageline::python {
namespace {

// The calls that run in their own threads. A child of fork() has none of these threads, so it starts with an empty one.
struct Running {
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;
};

std::atomic<Running*> g_running{nullptr};

Running& running() {
  static const bool begun = [] {
    g_running = new Running;
    pthread_atfork(nullptr, nullptr, [] { g_running = new Running; });
    return true;
  }();
  static_cast<void>(begun);
  return *g_running;
}

}  // namespace

namespace detail {

bool wait_for(std::function<void()> body, const std::shared_ptr<Wait>& wait, const std::shared_ptr<Progress>& progress,
              PyObject* report) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kSlice = std::chrono::milliseconds(50), kReport = std::chrono::milliseconds(100);
  Running& left = running();
  {
    const std::lock_guard lock(left.mutex);
    ++left.count;
  }
  std::thread([body = std::move(body), wait, &left]() mutable {
    body();
    body = nullptr;
    {
      const std::lock_guard lock(wait->mutex);
      wait->done = true;
      wait->ended.notify_all();
    }
    const std::lock_guard lock(left.mutex);
    --left.count;
    left.changed.notify_all();
  }).detach();

  bool broken = false;
  Clock::time_point next_report = Clock::now() + kReport;
  for (bool done = false; !done;) {
    PyThreadState* const state = PyEval_SaveThread();
    {
      std::unique_lock lock(wait->mutex);
      // Once the reading was told to stop, its end is near and worth waiting for.
      const auto is_done = [&] { return wait->done; };
      if (broken) wait->ended.wait(lock, is_done);
      else wait->ended.wait_for(lock, kSlice, is_done);
      done = wait->done;
    }
    PyEval_RestoreThread(state);
    if (broken) break;
    if (PyErr_CheckSignals() != 0) broken = true;
    if (!broken && report && !done && progress && Clock::now() >= next_report) {
      const Ref answer(PyObject_CallFunction(report, "LLL", static_cast<long long>(progress->done_bytes()),
                                             static_cast<long long>(progress->expected_bytes()),
                                             static_cast<long long>(progress->events())));
      if (!answer) broken = true;
      next_report = Clock::now() + kReport;
    }
    if (!broken) continue;
    if (done || !progress) break;
    progress->cancel();
  }
  return !broken;
}

}  // namespace detail

void wait_for_leftovers() {
  PyThreadState* const state = PyEval_SaveThread();
  {
    Running& left = running();
    std::unique_lock lock(left.mutex);
    left.changed.wait(lock, [&] { return left.count == 0; });
  }
  PyEval_RestoreThread(state);
}

}  // namespace stageline::python
