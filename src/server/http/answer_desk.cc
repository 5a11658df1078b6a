#include "server/http/answer_desk.h"

#include <new>

#include "base/freed_memory.h"

namespace stageline {
namespace {

constexpr size_t kMaxThreads = 2;
// An answer that took this long freed as much memory as it kept, or more; returning that takes milliseconds.
constexpr auto kLong = std::chrono::milliseconds(250);

size_t answer_bytes(const Result<std::string>& done) { return done ? done->size() : 0; }

// Running out of memory is an error of this answer only; the program goes on.
Result<std::string> made_by(const AnswerDesk::Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kLimit, "not enough memory for this answer",
                      "--ranks and --steps choose less of the run");
  }
}

}  // namespace

AnswerDesk::~AnswerDesk() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

AnswerDesk::Answer AnswerDesk::ask(const std::string& key, Work work, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  auto it = entries_.find(key);
  if (it == entries_.end()) {
    if (waiting_.size() >= kMaxWaiting) {
      entries_.erase(waiting_.back());
      waiting_.pop_back();
    }
    it = entries_.try_emplace(key).first;
    it->second.work = std::move(work);
    it->second.asked = Clock::now();
    waiting_.push_front(key);
    if (idle_ == 0 && threads_.size() < kMaxThreads) threads_.emplace_back([this] { make_answers(); });
    changed_.notify_all();
  } else if (!it->second.begun) {  // asked for again: it moves to the front
    const auto place = std::ranges::find(waiting_, key);
    if (place != waiting_.end()) waiting_.splice(waiting_.begin(), waiting_, place);
  }
  const auto is_done = [&] {  // while others ask, entries move and may be dropped
    it = entries_.find(key);
    return it == entries_.end() || it->second.done != nullptr;
  };
  if (patience.count() > 0) changed_.wait_for(lock, patience, is_done);
  else is_done();
  if (it == entries_.end()) return {};
  Entry& entry = it->second;
  entry.used = ++uses_;
  const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  if (entry.done) return {entry.done, seconds(entry.ended - entry.began), true};
  return {nullptr, seconds(Clock::now() - (entry.begun ? entry.began : entry.asked)), entry.begun};
}

bool AnswerDesk::busy() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(entries_, [](const auto& item) { return item.second.begun && !item.second.done; });
}

void AnswerDesk::make_answers() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    --idle_;
    if (stopping_) return;
    const std::string key = std::move(waiting_.front());
    waiting_.pop_front();
    Entry& started = entries_.at(key);
    started.begun = true;
    const auto began = started.began = Clock::now();
    const Work work = std::move(started.work);
    started.work = nullptr;
    lock.unlock();
    auto done = std::make_shared<const Result<std::string>>(made_by(work));
    if (Clock::now() - began >= kLong) return_freed_memory();
    lock.lock();
    Entry& entry = entries_.at(key);  // what is being made is never dropped
    entry.ended = Clock::now();
    entry.used = ++uses_;
    kept_bytes_ += answer_bytes(*done);
    entry.done = std::move(done);
    forget_some();
    changed_.notify_all();
  }
}

void AnswerDesk::forget_some() {
  while (kept_bytes_ > kMaxKeptBytes) {
    auto oldest = entries_.end();
    size_t count = 0;
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (!it->second.done) continue;
      ++count;
      if (oldest == entries_.end() || it->second.used < oldest->second.used) oldest = it;
    }
    if (count < 2) return;
    kept_bytes_ -= answer_bytes(*oldest->second.done);
    entries_.erase(oldest);
  }
}

}  // namespace stageline
