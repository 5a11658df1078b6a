#include "profile/shared_rows.h"

namespace stageline {

void SharedRows::end(size_t question) {
  const std::lock_guard lock(mutex_);
  move_to(question, SIZE_MAX);
}

void SharedRows::move_to(size_t question, size_t place) {
  at_[question] = place;
  held_.erase(held_.begin(), held_.lower_bound(std::ranges::min(at_)));
  changed_.notify_all();
}

std::shared_ptr<const TorchRank> SharedRows::rank(size_t question, const TorchRun& run, size_t part) {
  const auto lay_out = [&] { return std::make_shared<const TorchRank>(lay_out_rank(run, part)); };
  const size_t place = std::ranges::find(run.parts, part) - run.parts.begin();
  std::unique_lock lock(mutex_);
  if (!options_) options_ = run.options;
  if (run.options.hta != options_->hta || run.options.include_last_step != options_->include_last_step ||
      place < at_[question]) {
    lock.unlock();
    return lay_out();
  }
  move_to(question, place);
  std::shared_ptr<const TorchRank> rows;
  // The question that is furthest behind never waits for room, so one always goes on.
  changed_.wait(lock, [&] {
    if (const auto held = held_.find(place); held != held_.end()) return (rows = held->second) != nullptr;
    return held_.size() < max_ranks_ || place <= std::ranges::min(at_);
  });
  if (rows) return rows;
  held_[place] = nullptr;
  lock.unlock();
  // Gives the rows to those who wait for them; where there was no memory for them, another question may try.
  const auto hand_over = [&](const void*) {
    const std::lock_guard again(mutex_);
    if (rows) held_[place] = rows;
    else held_.erase(place);
    changed_.notify_all();
  };
  const std::unique_ptr<const SharedRows, decltype(hand_over)> at_end(this, hand_over);
  rows = lay_out();
  return std::shared_ptr(rows);
}

}  // namespace stageline
