#include "diagnosis/causes/cause.h"

#include <algorithm>

namespace stageline {

const CauseInfo& cause_info(CauseKind kind) {
  static constexpr CauseInfo kCauses[] = {
#define CAUSE(kind, name, finding, suspicion) {name, finding, suspicion},
#include "diagnosis/causes/causes.def"
#undef CAUSE
  };
  return kCauses[static_cast<size_t>(kind)];
}

std::string_view finding_id(const Cause& cause) {
  if (cause.kind == CauseKind::kPosition && cause.stage != kUnknown) return "cell.slow";
  return cause_info(cause.kind).finding;
}

void sort_causes(std::vector<Cause>& causes) {
  std::stable_sort(causes.begin(), causes.end(), [](const Cause& a, const Cause& b) {
    return a.price_ns() != b.price_ns() ? a.price_ns() > b.price_ns() : a.lost_ns > b.lost_ns;
  });
}

}  // namespace stageline
