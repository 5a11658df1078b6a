// Answers that take time: each is made once, on a thread of its own, and kept. Whoever asks gets the answer, or hears
// how long it has been worked on and asks again. Nobody has to wait, and an answer is finished even if the asker has
// left.
//
// Two answers are made at a time; of the waiting ones, the one asked for last comes first, so that whoever went on to
// another page is not held up by what was left behind. At most kMaxWaiting answers wait (the oldest is dropped, and
// made when it is asked for again) and at most kMaxKeptBytes are kept (the one not asked for longest goes first, but a
// single larger answer stays).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace stageline {

class AnswerDesk {
 public:
  using Work = std::function<Result<std::string>()>;
  struct Answer {
    std::shared_ptr<const Result<std::string>> done;  // null: it is being made or waits
    double seconds = 0;                               // that it took, or has taken so far
    bool begun = false;  // of one that is not done: it is being made; false: others are made first
  };
  static constexpr size_t kMaxWaiting = 64;
  static constexpr size_t kMaxKeptBytes = size_t{256} << 20;

  AnswerDesk() = default;
  ~AnswerDesk();  // waits for what is being made; busy() says whether something is
  AnswerDesk(const AnswerDesk&) = delete;
  AnswerDesk& operator=(const AnswerDesk&) = delete;

  // Starts `work` where nothing is known of `key` yet, and waits up to `patience` for it. Any thread.
  Answer ask(const std::string& key, Work work, std::chrono::milliseconds patience = {});
  bool busy() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Work work;
    std::shared_ptr<const Result<std::string>> done;
    Clock::time_point asked, began, ended;
    bool begun = false;
    uint64_t used = 0;
  };
  void make_answers();
  void forget_some();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, Entry> entries_;
  std::list<std::string> waiting_;  // the one asked for last comes first
  std::vector<std::thread> threads_;
  uint64_t uses_ = 0;
  size_t idle_ = 0, kept_bytes_ = 0;
  bool stopping_ = false;
};

}  // namespace stageline
