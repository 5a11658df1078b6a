#include "facts/run.h"

namespace stageline {

Run::Slot& Run::slot_of(std::type_index fact) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Slot>& slot = slots_[fact];
  if (!slot) slot = std::make_unique<Slot>();
  return *slot;
}

std::shared_ptr<const void> Run::value_of(std::type_index fact) const {
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find(fact);
  return found == slots_.end() ? nullptr : found->second->value;
}

void Run::make_once(Slot& slot, const std::function<std::shared_ptr<const void>()>& make) const {
  std::call_once(slot.once, [&] {
    std::shared_ptr<const void> value = make();
    const std::lock_guard lock(mutex_);
    slot.value = std::move(value);
  });
}

size_t Run::made_count() const {
  const std::lock_guard lock(mutex_);
  return sum_over<size_t>(slots_, [&](const auto& entry) { return entry.second->value ? 1 : 0; });
}

}  // namespace stageline
