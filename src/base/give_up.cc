#include "base/give_up.h"

namespace stageline {

thread_local const GiveUpScope* GiveUpScope::current_ = nullptr;

GiveUpScope::GiveUpScope(std::function<bool()> is_over) : is_over_(std::move(is_over)), outer_(current_) {
  current_ = this;
}

GiveUpScope::~GiveUpScope() { current_ = outer_; }

bool GiveUpScope::is_over() const { return is_over_() || (outer_ && outer_->is_over()); }

}  // namespace stageline
