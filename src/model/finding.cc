#include "model/finding.h"

namespace stageline {

Finding* find_finding(std::vector<Finding>& list, std::string_view id) {
  const auto it = std::ranges::find(list, id, &Finding::id);
  return it == list.end() ? nullptr : &*it;
}

bool has_finding(const std::vector<Finding>& list, std::string_view id) {
  return std::ranges::find(list, id, &Finding::id) != list.end();
}

std::string key_of(const Finding& finding) {
  if (!finding.key.empty()) return finding.key;
  return finding.places.empty() ? std::string() : key_of(finding.places.front());
}

namespace {

std::optional<int64_t> of_time(const Finding& finding, double ns) {
  return finding.is_time ? std::optional<int64_t>(std::llround(ns)) : std::nullopt;
}

}  // namespace

std::optional<int64_t> cost_ns(const Finding& finding) { return of_time(finding, finding.lost_ns_per_step); }
std::optional<int64_t> cost_error_ns(const Finding& finding) { return of_time(finding, finding.uncertainty_ns); }

// Weak: a program with another list of causes (tests/toy_cause) has other findings.
[[gnu::weak]] const std::vector<std::string_view>& finding_ids() {
  static const std::vector<std::string_view> ids = {
#define FINDING(id, ...) id,
#include "model/findings.def"
  };
  return ids;
}

}  // namespace stageline
