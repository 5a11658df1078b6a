// Computes slow answers in the background: each answer is computed once, on its own thread, and cached. A request
// returns the answer or the elapsed time, and the client polls. No request blocks, and an answer is completed even if
// the client has disconnected.
//
// Two answers are made at a time. Among waiting ones the latest request comes first, so that a user who went on to
// another page does not wait for the previous one. At most kMaxWaiting answers wait; the oldest is dropped, and made
// when it is requested again. At most kMaxKeptBytes are kept; the least recently requested one goes first, but a single
// larger answer stays.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include "base/vocabulary.h"

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
