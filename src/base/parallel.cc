#include "base/parallel.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "base/give_up.h"

namespace stageline {
namespace {

std::atomic<int> g_thread_count{0};

// A loop for which a caller waits. Every thread that takes part takes ranges of indices until none is left.
struct Loop {
  const std::function<void(size_t)>& body;
  const size_t count, stretch;
  const GiveUpScope* const scope = GiveUpScope::current();
  std::atomic<size_t> next{0};
  // The fields below belong to the crew and are protected by its lock.
  size_t seats = 0;   // how many more threads may join
  size_t inside = 0;  // number of threads besides the caller that are running bodies of this loop
  std::exception_ptr thrown{};
  std::condition_variable left{};
};

// Threads that help with loops. They are started when first needed, and kept. The caller of a loop always works on it
// too, and waits only for bodies that already run, never for a free thread. So loops within loops cannot block each
// other, and a caller that holds a lock never gets work of another loop.
class Crew {
 public:
  // `of_parent`: the crew of the process that this one was forked from. Threads that are not here may hold its locks,
  // so it is only kept, where tools that look for lost memory find it.
  explicit Crew(Crew* of_parent = nullptr) : of_parent_(of_parent) {}

  void run(size_t count, size_t workers, const std::function<void(size_t)>& body) {
    // Sixteen ranges for each thread even out bodies of unequal length, and cost little compared with short bodies.
    Loop loop{body, count, std::max<size_t>(1, count / (workers * 16))};
    {
      const std::lock_guard lock(mutex_);
      for (; threads_ + 1 < workers; ++threads_) std::thread(&Crew::help, this).detach();
      loop.seats = workers - 1;
      loops_.push_back(&loop);
    }
    for (size_t w = 1; w < workers; ++w) wanted_.notify_one();
    work_on(loop);
    std::unique_lock lock(mutex_);
    std::erase(loops_, &loop);
    loop.left.wait(lock, [&] { return loop.inside == 0; });
    if (loop.thrown) std::rethrow_exception(loop.thrown);
  }

 private:
  void work_on(Loop& loop) {
    try {
      for (size_t begin; (begin = loop.next.fetch_add(loop.stretch)) < loop.count;)
        for (size_t i = begin, end = std::min(begin + loop.stretch, loop.count); i < end; ++i) {
          give_up_point();
          loop.body(i);
        }
    } catch (...) {
      loop.next = loop.count;  // so that no thread starts another range
      const std::lock_guard lock(mutex_);
      if (!loop.thrown) loop.thrown = std::current_exception();
    }
  }

  // Takes the newest loop first: it is usually inside an older one, whose caller waits for it.
  Loop* open_loop() const {
    for (size_t l = loops_.size(); l-- > 0;)
      if (loops_[l]->seats > 0 && loops_[l]->next < loops_[l]->count) return loops_[l];
    return nullptr;
  }

  void help() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Loop* loop = nullptr;
      wanted_.wait(lock, [&] { return (loop = open_loop()) != nullptr; });
      --loop->seats;
      ++loop->inside;
      lock.unlock();
      {
        const GiveUpShare share(loop->scope);
        work_on(*loop);
      }
      lock.lock();
      ++loop->seats;
      if (--loop->inside == 0) loop->left.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wanted_;
  std::vector<Loop*> loops_;
  size_t threads_ = 0;
  [[maybe_unused]] Crew* const of_parent_;
};

std::atomic<Crew*> g_crew{nullptr};

// Threads wait in their crew until the process ends. Threads do not survive a fork, so the child gets a crew of its
// own, and the locks that threads of the parent held stay with the old crew.
Crew& crew() {
  static const bool begun = [] {
    g_crew = new Crew;
    pthread_atfork(nullptr, nullptr, [] { g_crew = new Crew(g_crew); });
    return true;
  }();
  static_cast<void>(begun);
  return *g_crew;
}

}  // namespace

int thread_count() {
  const int asked = g_thread_count.load();
  return asked > 0 ? asked : std::max<int>(1, std::thread::hardware_concurrency());
}

void set_thread_count(int count) { g_thread_count = std::max(0, count); }

void parallel_for(size_t count, const std::function<void(size_t)>& body) {
  const size_t workers = std::min<size_t>(count, static_cast<size_t>(thread_count()));
  if (workers > 1) {
    crew().run(count, workers, body);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    give_up_point();
    body(i);
  }
}

}  // namespace stageline
