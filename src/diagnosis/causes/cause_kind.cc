#include "diagnosis/causes/cause_kind.h"

namespace stageline {

bool CauseKind::takes(std::string_view line) const { return std::ranges::find(takes_from, line) != takes_from.end(); }

#define CAUSE(id_, name_, ...) const CauseKind id_##_cause = {.id = #id_, .name = name_, __VA_ARGS__};
#include "diagnosis/causes/causes.def"

// Weak: a program with another list of causes (tests/toy_cause) defines another one.
[[gnu::weak]] std::span<const CauseKind* const> cause_kinds() {
  static constexpr const CauseKind* kKinds[] = {
#define CAUSE(id, ...) &id##_cause,
#include "diagnosis/causes/causes.def"
  };
  return kKinds;
}

}  // namespace stageline
