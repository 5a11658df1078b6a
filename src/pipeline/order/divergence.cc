#include "pipeline/order/rank_lists.h"

namespace stageline {

// The furthest-reaching form of the edit distance (Ukkonen 1985, Myers 1986). The value row[k] is the position in `a`
// that is reached with e edits on diagonal k = (position in b) − (position in a). For nearly equal lists it costs
// little more than a comparison.

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

std::string token_text(const WorkToken& t, bool with_chunk, const MicroBatchLabel& label) {
  std::string text = t.kind == CellKind::kForward ? "F" : "B";
  text += t.micro_batch == kUnknown ? "?" : std::to_string(label ? label(t.micro_batch, t.chunk) : t.micro_batch);
  if (with_chunk) text += ".c" + (t.chunk == kUnknown ? "?" : std::to_string(t.chunk));
  return text;
}

// Returns the cell that this token belongs to: "F3.c1", or for two that run together "F3.c0&B1.c1".
std::string text_of(std::span<const WorkToken> list, size_t at, bool with_chunk, const MicroBatchLabel& label) {
  const bool forward = list[at].kind == CellKind::kForward;
  const size_t other = forward ? at + 1 : at - 1;  // may wrap around to an index beyond every list
  const bool both =
      list[at].fused && other < list.size() && list[other].fused && (list[other].kind == CellKind::kForward) != forward;
  if (!both) return token_text(list[at], with_chunk, label);
  return token_text(list[std::min(at, other)], with_chunk, label) + "&" +
         token_text(list[std::max(at, other)], with_chunk, label);
}

bool contains(std::span<const WorkToken> list, const WorkToken& token) {
  return std::ranges::any_of(list, [&](const WorkToken& t) { return same_direction(t, token); });
}

int64_t warm_up(std::span<const WorkToken> list) {
  const auto backward = std::ranges::find_if(list, [](const WorkToken& t) { return t.kind != CellKind::kForward; });
  return backward - list.begin();
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

std::optional<Divergence> first_divergence(std::span<const WorkToken> expected, std::span<const WorkToken> found,
                                           bool with_chunk, const MicroBatchLabel& label) {
  size_t at = 0;
  while (at < expected.size() && at < found.size() && same_direction(expected[at], found[at])) ++at;
  if (at == expected.size() && at == found.size()) return std::nullopt;
  Divergence d;
  d.position = at;
  if (at < expected.size()) d.expected = text_of(expected, at, with_chunk, label);
  if (at < found.size()) d.found = text_of(found, at, with_chunk, label);
  Args args;
  args.set("expected", d.expected).set("found", d.found).set("at", d.position);
  const auto say = [&](const char* name) { d.sentence = words(name, args); };
  if (d.found.empty()) {
    say("divergence.ends");
  } else if (d.expected.empty()) {
    say("divergence.after");
  } else if (!contains(found.subspan(at), expected[at])) {
    say("divergence.lacks");
  } else if (!contains(expected.subspan(at), found[at])) {
    say("divergence.instead");
  } else {
    d.is_order = true;
    const int64_t wanted = warm_up(expected), seen = warm_up(found);
    args.set("wanted", wanted).set("seen", seen).flag("one", seen == 1);
    say(wanted != seen && d.position == std::min(wanted, seen) ? "divergence.warm_up" : "divergence.order");
  }
  return d;
}

}  // namespace stageline
