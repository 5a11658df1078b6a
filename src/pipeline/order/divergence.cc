#include <algorithm>

#include "pipeline/order/rank_lists.h"

namespace stageline {
namespace {

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
