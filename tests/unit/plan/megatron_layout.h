// Reads Megatron's layout strings as Megatron does, so that tests can read back what the planner writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/number.h"
#include "base/result.h"
#include "base/text.h"

namespace stageline::plan {

// The parts of one virtual stage.
struct LayoutStage {
  bool embedding = false, loss = false;
  int32_t layers = 0, mtp = 0;
  bool operator==(const LayoutStage&) const = default;
};

inline constexpr size_t kMaxSymbols = 1'000'000;

inline Error refused(std::string_view text, const std::string& why) {
  return make_error(ErrorCode::kUsage, "the layout " + valid_utf8(text) + " is refused: " + why,
                    "write it as in Et*7|(t*8|)*14t*7L: E first, L last, t for each layer");
}

// Reads "*N" at `at`; 1 where there is none, 0 where N is no number.
inline int64_t repeats(std::string_view text, size_t& at) {
  if (at >= text.size() || text[at] != '*') return 1;
  size_t end = at + 1;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  const auto number = parse_int(text.substr(at + 1, end - at - 1));
  at = end;
  return number && *number >= 1 && *number <= 100'000 ? *number : 0;
}

// Expands x*N in a text without parentheses.
inline bool expand(std::string_view text, std::string& out) {
  for (size_t at = 0; at < text.size();) {
    const char symbol = text[at++];
    const int64_t count = repeats(text, at);
    if (count == 0 || out.size() + static_cast<size_t>(count) > kMaxSymbols) return false;
    out.append(static_cast<size_t>(count), symbol);
  }
  return true;
}

// Reads `--pipeline-model-parallel-layout`: E, t, m, L; | begins the next virtual stage; x*N and (…)*N repeat; commas
// are ignored, parentheses do not nest. Stages are in the order of the model: all ranks of chunk 0, then chunk 1.
// Errors: kUsage with what Megatron refuses.
inline Result<std::vector<LayoutStage>> parse_megatron_layout(std::string_view given, int32_t pp, int32_t layers,
                                                              int32_t mtp) {
  std::string text, symbols;
  for (const char c : given)
    if (c != ',') text += c;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find('(', at);
    if (!expand(std::string_view(text).substr(at, open - at), symbols)) return refused(given, "a repeat is no number");
    if (open == std::string::npos) break;
    const size_t close = text.find(')', open);
    if (close == std::string::npos || text.find('(', open + 1) < close)
      return refused(given, "parentheses do not match, or stand within others");
    std::string inner;
    if (!expand(std::string_view(text).substr(open + 1, close - open - 1), inner))
      return refused(given, "a repeat is no number");
    at = close + 1;
    const int64_t count = repeats(text, at);
    if (count == 0 || symbols.size() + inner.size() * static_cast<size_t>(count) > kMaxSymbols)
      return refused(given, "a repeat is no number, or too large");
    for (int64_t i = 0; i < count; ++i) symbols += inner;
  }
  std::vector<LayoutStage> stages(1);
  int32_t found_layers = 0, found_mtp = 0, embeddings = 0, losses = 0;
  for (size_t i = 0; i < symbols.size(); ++i) {
    LayoutStage& stage = stages.back();
    switch (symbols[i]) {
      case '|': stages.emplace_back(); break;
      case 'E':
        if (i > 0) return refused(given, "E is not the first");
        stage.embedding = true, ++embeddings;
        break;
      case 'L':
        if (i + 1 < symbols.size()) return refused(given, "L is not the last");
        stage.loss = true, ++losses;
        break;
      case 't':
        if (found_mtp > 0) return refused(given, "a t comes after an m");
        ++stage.layers, ++found_layers;
        break;
      case 'm': ++stage.mtp, ++found_mtp; break;
      default: return refused(given, std::string("it has \"") + valid_utf8(symbols.substr(i, 1)) + "\"");
    }
  }
  const auto count = static_cast<int32_t>(stages.size());
  if (pp < 1 || count % pp != 0)
    return refused(given, std::to_string(count) + " stages are not divisible by " + std::to_string(pp) + " ranks");
  if (embeddings != 1 || losses != 1) return refused(given, "E and L are needed once each");
  if (found_layers != layers)
    return refused(given, "it has " + std::to_string(found_layers) + " layers, not " + std::to_string(layers));
  if (found_mtp != mtp)
    return refused(given, "it has " + std::to_string(found_mtp) + " MTP layers, not " + std::to_string(mtp));
  int32_t with_mtp = 0;
  for (int32_t s = 0; s < count; ++s) {
    if (stages[s].mtp == 0) continue;
    ++with_mtp;
    if ((s % pp == 0 && pp > 1) || s / pp + 1 < count / pp)
      return refused(given, "m is not in the last stage of a rank after the first");
  }
  if (with_mtp > 1) return refused(given, "m is in several stages");
  return stages;
}

}  // namespace stageline::plan
