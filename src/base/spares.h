// Keeps buffers that the tasks of a parallel loop hand on to each other. If every task allocated its own buffer of
// megabytes, the kernel would clear it page by page each time.
#pragma once

#include <mutex>

#include "base/vocabulary.h"

namespace stageline {

// Holds as many `T` as tasks run at the same time, each in the state in which the task before left it.
template <class T> class Spares {
 public:
  // Holds a `T` that one task uses; the destructor gives it back.
  class Lent {
   public:
    explicit Lent(Spares& spares) : spares_(spares), own_(spares.take()) {}
    ~Lent() { spares_.give(std::move(own_)); }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    T& operator*() const { return *own_; }
    T* operator->() const { return own_.get(); }

   private:
    Spares& spares_;
    std::unique_ptr<T> own_;
  };

 private:
  std::unique_ptr<T> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<T>();
    std::unique_ptr<T> one = std::move(free_.back());
    free_.pop_back();
    return one;
  }
  void give(std::unique_ptr<T> one) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(one));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
};

}  // namespace stageline
