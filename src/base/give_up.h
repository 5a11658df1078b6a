// Giving up: who asked no longer wants the answer, or has waited as long as he would. What takes long looks now and
// then whether that is so, and ends there.
//
//   const GiveUpScope scope([&] { return progress.cancelled(); });   who asks, around the question
//   try { … } catch (const GivenUp&) { … }                           the question ends here
//   give_up_point();                                                 in loops over many things, every so many of them
//
// parallel_for looks before each of its bodies, on all threads that help with them. Without a scope nothing is ever
// given up. What was half made when it was given up is forgotten: who keeps answers keeps whole ones.
#pragma once

#include <cstddef>
#include <functional>

namespace stageline {

struct GivenUp {};

class GiveUpScope {
 public:
  // `is_over`: asked from every thread that works on the question; once it says yes, it always does.
  explicit GiveUpScope(std::function<bool()> is_over);
  ~GiveUpScope();
  GiveUpScope(const GiveUpScope&) = delete;
  GiveUpScope& operator=(const GiveUpScope&) = delete;

  // Of the question that this thread works on; null: none that could be given up.
  static const GiveUpScope* current() { return current_; }
  // Whether it, or one around it, is given up.
  bool is_over() const;

 private:
  friend class GiveUpShare;
  static thread_local const GiveUpScope* current_;
  const std::function<bool()> is_over_;
  const GiveUpScope* const outer_;
};

// For a thread that helps another with its question.
class GiveUpShare {
 public:
  explicit GiveUpShare(const GiveUpScope* scope) : before_(GiveUpScope::current_) { GiveUpScope::current_ = scope; }
  ~GiveUpShare() { GiveUpScope::current_ = before_; }
  GiveUpShare(const GiveUpShare&) = delete;
  GiveUpShare& operator=(const GiveUpShare&) = delete;

 private:
  const GiveUpScope* const before_;
};

// Throws GivenUp where the question that this thread works on is given up.
inline void give_up_point() {
  if (const GiveUpScope* const scope = GiveUpScope::current(); scope && scope->is_over()) throw GivenUp();
}
// The same in a loop over rows, at every 65 536th.
inline void give_up_point(size_t row) {
  if (row % 65536 == 0) give_up_point();
}

}  // namespace stageline
