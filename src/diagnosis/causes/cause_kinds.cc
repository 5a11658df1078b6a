// The list of all causes, in a file of its own: a program with another list (tests/toy_cause) links its own in place.
#include "diagnosis/causes/cause_kind.h"

namespace stageline {

#define CAUSE(id) extern const CauseKind id##_cause;
#include "diagnosis/causes/causes.def"
#undef CAUSE

std::span<const CauseKind* const> cause_kinds() {
  static constexpr const CauseKind* kKinds[] = {
#define CAUSE(id) &id##_cause,
#include "diagnosis/causes/causes.def"
#undef CAUSE
  };
  return kKinds;
}

}  // namespace stageline
