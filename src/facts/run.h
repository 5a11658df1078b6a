// Run: a trace and facts about it. The room that owns a fact (theory, graph, waterfall, causes …) defines how it is
// made. It is made once, at the first request; requests of other threads meanwhile wait. It lives as long as the Run.
//
//   struct TheoryFact {                                        // in the room that owns it
//     using Value = TheoryRun;
//     static Value make(const Run& run) { return theory_of(run.trace(), sums_of(run)); }
//   };
//   run.fact<TheoryFact>()                                     // anywhere above: const TheoryRun&
//
// A fact may ask for other facts. Two that ask for each other would wait for ever, so facts follow the order of the
// rooms.
#pragma once

#include <mutex>
#include <typeindex>

#include "model/trace.h"

namespace stageline {

class Run {
 public:
  // `trace` must outlive the Run, and must not change meanwhile.
  explicit Run(const Trace& trace) : trace_(trace) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const Trace& trace() const { return trace_; }

  // Thread-safe. The reference is valid as long as the Run.
  template <typename Fact> const typename Fact::Value& fact() const {
    using FactValue = typename Fact::Value;
    Slot& slot = slot_of(typeid(Fact));
    make_once(slot,
              [this] { return std::shared_ptr<const void>(std::make_shared<const FactValue>(Fact::make(*this))); });
    return *static_cast<const FactValue*>(slot.value.get());
  }
  // Returns the fact if it has been made, else nullptr.
  template <typename Fact> const typename Fact::Value* made() const {
    return static_cast<const typename Fact::Value*>(value_of(typeid(Fact)).get());
  }
  // Returns how many facts were made; for tests.
  size_t made_count() const;

 private:
  struct Slot {
    std::once_flag once;
    std::shared_ptr<const void> value;  // written under `mutex_`
  };
  Slot& slot_of(std::type_index fact) const;
  std::shared_ptr<const void> value_of(std::type_index fact) const;
  void make_once(Slot& slot, const std::function<std::shared_ptr<const void>()>& make) const;

  const Trace& trace_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::type_index, std::unique_ptr<Slot>> slots_;
};

}  // namespace stageline
