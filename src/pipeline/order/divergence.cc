#include "pipeline/order/divergence.h"

#include <algorithm>

#include "pipeline/order/edit_distance.h"

namespace stageline {
namespace {

std::string token_text(const WorkToken& t, bool with_chunk, const MicroBatchLabel& label) {
  std::string text = t.kind == CellKind::kForward ? "F" : "B";
  text += t.micro_batch == kUnknown ? "?" : std::to_string(label ? label(t.micro_batch, t.chunk) : t.micro_batch);
  if (with_chunk) text += ".c" + (t.chunk == kUnknown ? "?" : std::to_string(t.chunk));
  return text;
}

// The cell of the list that this token is of: "F3.c1", and of two that run together "F3.c0&B1.c1".
std::string text_of(std::span<const WorkToken> list, size_t at, bool with_chunk, const MicroBatchLabel& label) {
  const bool forward = list[at].kind == CellKind::kForward;
  const size_t other = forward ? at + 1 : at - 1;  // wraps to what is beyond every list
  const bool both =
      list[at].fused && other < list.size() && list[other].fused && (list[other].kind == CellKind::kForward) != forward;
  if (!both) return token_text(list[at], with_chunk, label);
  return token_text(list[std::min(at, other)], with_chunk, label) + "&" +
         token_text(list[std::max(at, other)], with_chunk, label);
}

bool contains(std::span<const WorkToken> list, const WorkToken& token) {
  return std::any_of(list.begin(), list.end(), [&](const WorkToken& t) { return same_direction(t, token); });
}

int64_t warm_up(std::span<const WorkToken> list) {
  const auto backward =
      std::find_if(list.begin(), list.end(), [](const WorkToken& t) { return t.kind != CellKind::kForward; });
  return backward - list.begin();
}

}  // namespace

std::optional<Divergence> first_divergence(std::span<const WorkToken> expected, std::span<const WorkToken> found,
                                           bool with_chunk, const MicroBatchLabel& label) {
  size_t at = 0;
  while (at < expected.size() && at < found.size() && same_direction(expected[at], found[at])) ++at;
  if (at == expected.size() && at == found.size()) return std::nullopt;
  Divergence d;
  d.position = static_cast<int64_t>(at);
  if (at < expected.size()) d.expected = text_of(expected, at, with_chunk, label);
  if (at < found.size()) d.found = text_of(found, at, with_chunk, label);
  const std::string place_en = " (place " + std::to_string(at) + ")", place_zh = "（第 " + std::to_string(at) + " 位）";
  if (d.found.empty()) {
    d.sentence_en = "ends before " + d.expected + place_en + ": the recording is cut, or work is missing";
    d.sentence_zh = "在 " + d.expected + " 之前结束" + place_zh + "：记录被截断，或缺少工作";
  } else if (d.expected.empty()) {
    d.sentence_en = "runs " + d.found + " after the schedule has ended" + place_en;
    d.sentence_zh = "在调度结束之后仍运行 " + d.found + place_zh;
  } else if (!contains(found.subspan(at), expected[at])) {
    d.sentence_en = "lacks " + d.expected + "; " + d.found + " follows instead" + place_en;
    d.sentence_zh = "缺少 " + d.expected + "，其后直接是 " + d.found + place_zh;
  } else if (!contains(expected.subspan(at), found[at])) {
    d.sentence_en = "runs " + d.found + " where the schedule has " + d.expected + place_en;
    d.sentence_zh = "运行 " + d.found + "，而调度此处是 " + d.expected + place_zh;
  } else {
    d.is_order = true;
    const int64_t wanted = warm_up(expected), seen = warm_up(found);
    if (wanted != seen && d.position == std::min(wanted, seen)) {
      const std::string w = std::to_string(wanted), s = std::to_string(seen);
      d.sentence_en = "warms up with " + s + (seen == 1 ? " forward" : " forwards") + " instead of " + w + ": " +
                      d.found + " comes before " + d.expected + place_en;
      d.sentence_zh = "预热前向为 " + s + " 个而不是 " + w + " 个：" + d.found + " 先于 " + d.expected + place_zh;
    } else {
      d.sentence_en = "runs " + d.found + " before " + d.expected + place_en;
      d.sentence_zh = "先运行 " + d.found + "，后运行 " + d.expected + place_zh;
    }
  }
  return d;
}

}  // namespace stageline
