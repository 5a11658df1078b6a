// The furthest-reaching form of the edit distance (Ukkonen 1985, Myers 1986). The value row[k] is the position in `a`
// that is reached with e edits on diagonal k = (position in b) − (position in a). For nearly equal lists it costs
// little more than a comparison.
#include <algorithm>
#include <optional>
#include <vector>

#include "pipeline/order/rank_lists.h"

namespace stageline {
namespace {

bool same_place(const WorkToken& a, const WorkToken& b) {
  return (a.micro_batch == b.micro_batch || a.micro_batch == kUnknown || b.micro_batch == kUnknown) &&
         (a.chunk == b.chunk || a.chunk == kUnknown || b.chunk == kUnknown);
}

// Returns the distance when it is at most kExactDistance.
std::optional<size_t> near_distance(std::span<const WorkToken> a, std::span<const WorkToken> b, SameToken same) {
  constexpr std::ptrdiff_t kNowhere = -2, kMax = kExactDistance;
  const std::ptrdiff_t n = std::ssize(a), m = std::ssize(b);
  if (std::abs(n - m) > kMax) return std::nullopt;
  std::vector<std::ptrdiff_t> before(2 * kMax + 3, kNowhere), now = before;
  for (std::ptrdiff_t e = 0; e <= kMax; ++e) {
    for (std::ptrdiff_t k = -e; k <= e; ++k) {
      const size_t at = kMax + 1 + k;
      std::ptrdiff_t i = e == 0 ? 0 : std::max({before[at - 1], before[at] + 1, before[at + 1] + 1});
      i = std::min({i, n, m - k});
      if (i < 0 || i + k < 0) {
        now[at] = kNowhere;
        continue;
      }
      while (i < n && i + k < m && same(a[i], b[i + k])) ++i;
      now[at] = i;
      if (i == n && i + k == m) return static_cast<size_t>(e);
    }
    before.swap(now);
  }
  return std::nullopt;
}

}  // namespace

bool same_direction(const WorkToken& a, const WorkToken& b) {
  return (a.kind == CellKind::kForward) == (b.kind == CellKind::kForward) && same_place(a, b);
}

bool same_work(const WorkToken& a, const WorkToken& b) {
  return a.kind == b.kind && a.fused == b.fused && same_place(a, b);
}

size_t edit_distance(std::span<const WorkToken> a, std::span<const WorkToken> b, SameToken same) {
  while (!a.empty() && !b.empty() && same(a.front(), b.front())) a = a.subspan(1), b = b.subspan(1);
  while (!a.empty() && !b.empty() && same(a.back(), b.back())) {
    a = a.first(a.size() - 1);
    b = b.first(b.size() - 1);
  }
  if (const auto distance = near_distance(a, b, same)) return *distance;
  // Lists that far apart are compared position by position.
  const size_t shared = std::min(a.size(), b.size());
  size_t apart = std::max(a.size(), b.size()) - shared;
  for (size_t i = 0; i < shared; ++i) apart += same(a[i], b[i]) ? 0 : 1;
  return std::max(apart, kExactDistance + 1);
}

}  // namespace stageline
