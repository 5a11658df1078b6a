#include "diagnosis/causes/cause_kind.h"

namespace stageline {

#define CAUSE(id) extern const CauseKind id##_cause;
#include "diagnosis/causes/causes.def"
#undef CAUSE

// Weak: a program with another list of causes (tests/toy_cause) defines another one.
[[gnu::weak]] std::span<const CauseKind* const> cause_kinds() {
  static constexpr const CauseKind* kKinds[] = {
#define CAUSE(id) &id##_cause,
#include "diagnosis/causes/causes.def"
#undef CAUSE
  };
  return kKinds;
}

}  // namespace stageline
