// Work of the program that may take long, from Python: without the interpreter's lock, and Ctrl-C ends the wait.
//
//   calling thread                      worker
//   ──────────────                      ──────
//   starts it, lets go of the lock ───▶ work()
//   every 50 ms: signals? progress?       │
//   Ctrl-C: progress->cancel()  ─ ─ ─ ─▶  readers stop at their next window
//   takes the lock, returns     ◀───────  done
//
// No Python code runs on the worker. Work that takes a Progress is waited for after Ctrl-C, because it ends within a
// window, and its memory is given back. Other work (an analysis of a loaded run) owns all it uses, runs to its end
// unseen and keeps no lock.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "base/progress.h"
#include "python_api.h"

namespace stageline::python {

namespace detail {

struct Wait {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
};
// Runs `body` on a thread and waits; false with an exception set when the wait was broken off. `body` never throws.
bool wait_for(std::function<void()> body, const std::shared_ptr<Wait>& wait, const std::shared_ptr<Progress>& progress,
              PyObject* report);

}  // namespace detail

// The worker's result, or nothing with an exception set. `work` owns what it uses. `report` (a callable or null) gets
// (bytes done, bytes expected or 0, events) at most ten times a second, on the calling thread.
template <class T>
std::optional<T> long_call(std::function<T()> work, std::shared_ptr<Progress> progress = nullptr,
                           PyObject* report = nullptr) {
  struct State {
    std::optional<T> result;
    std::string fault;
    bool no_memory = false;
  };
  const auto state = std::make_shared<State>();
  const auto wait = std::make_shared<detail::Wait>();
  auto body = [state, work = std::move(work)]() mutable {
    try {
      state->result.emplace(work());
    } catch (const std::bad_alloc&) {
      state->no_memory = true;
    } catch (const std::exception& e) {
      state->fault = e.what();
    }
    work = nullptr;  // what it owns goes on this thread, not under the interpreter's lock
  };
  if (!detail::wait_for(std::move(body), wait, progress, report)) return std::nullopt;
  if (state->no_memory) {
    PyErr_NoMemory();
    return std::nullopt;
  }
  if (!state->result) {
    raise_internal(state->fault);
    return std::nullopt;
  }
  return std::move(state->result);
}

// Waits for work that Ctrl-C left behind; for the interpreter's end.
void wait_for_leftovers();

}  // namespace stageline::python
