#include "model/finding.h"

namespace stageline {

std::string key_of(const Finding& finding) {
  if (!finding.key.empty()) return finding.key;
  return finding.places.empty() ? std::string() : key_of(finding.places.front());
}

// Weak: a program with another list of causes (tests/toy_cause) has other findings.
[[gnu::weak]] const std::vector<std::string_view>& finding_ids() {
  static const std::vector<std::string_view> ids = {
#define FINDING(id) id,
#include "model/findings.def"
#undef FINDING
  };
  return ids;
}

}  // namespace stageline
