// Giving up: the asker no longer wants the answer, or has waited as long as it agreed to. Long computations check this
// regularly and end there.
//
//   const GiveUpScope scope([&] { return progress.cancelled(); });   who asks, around the question
//   try { … } catch (const GivenUp&) { … }                           the question ends here
//   give_up_point();                                                 in loops over many things, every so many of them
//
// parallel_for checks before each of its bodies, on all threads that help with them. Without a scope nothing is ever
// given up. Half-made results are dropped: a cache must keep complete answers only.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

struct GivenUp {};

class GiveUpScope {
 public:
  // `is_over`: asked from every thread that works on the question; once it says yes, it always does.
  explicit GiveUpScope(std::function<bool()> is_over);
  ~GiveUpScope();
  GiveUpScope(const GiveUpScope&) = delete;
  GiveUpScope& operator=(const GiveUpScope&) = delete;

  // Returns the scope of the question that this thread works on; null when it cannot be given up.
  static const GiveUpScope* current() { return current_; }
  // Returns true if it, or one around it, is given up.
  bool is_over() const;

 private:
  friend class GiveUpShare;
  static thread_local const GiveUpScope* current_;
  const std::function<bool()> is_over_;
  const GiveUpScope* const outer_;
};

// Sets the scope of a thread that helps another with its question.
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
// Checks the same in a loop over rows, at every 65 536th.
inline void give_up_point(size_t row) {
  if (row % 65536 == 0) give_up_point();
}

}  // namespace stageline
