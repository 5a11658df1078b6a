#include "plan/layouts.h"

#include <algorithm>

#include "base/number.h"
#include "base/text.h"

namespace stageline::plan {
namespace {

constexpr size_t kMaxSymbols = 1'000'000;

Error refused(std::string_view text, const std::string& why) {
  return make_error(ErrorCode::kUsage, "the layout " + valid_utf8(text) + " is refused: " + why,
                    "write it as in Et*7|(t*8|)*14t*7L: E first, L last, t for each layer");
}

// Reads "*N" at `at`; 1 where there is none, 0 where N is no number.
int64_t repeats(std::string_view text, size_t& at) {
  if (at >= text.size() || text[at] != '*') return 1;
  size_t end = at + 1;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  const auto number = parse_int(text.substr(at + 1, end - at - 1));
  at = end;
  return number && *number >= 1 && *number <= 100'000 ? *number : 0;
}

// Expands x*N in a text without parentheses.
bool expand(std::string_view text, std::string& out) {
  for (size_t at = 0; at < text.size();) {
    const char symbol = text[at++];
    const int64_t count = repeats(text, at);
    if (count == 0 || out.size() + static_cast<size_t>(count) > kMaxSymbols) return false;
    out.append(static_cast<size_t>(count), symbol);
  }
  return true;
}

std::string stage_text(int32_t layers) {
  return layers < 3 ? std::string(static_cast<size_t>(layers), 't') : "t*" + std::to_string(layers);
}

}  // namespace

Result<std::vector<LayoutStage>> parse_megatron_layout(std::string_view given, int32_t pp, int32_t layers,
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

std::string write_megatron_layout(const std::vector<int32_t>& layers, int32_t mtp) {
  const size_t count = layers.size();
  // The longest run of equal stages without E and L is written once.
  size_t best = 0, length = 0;
  for (size_t from = 1; from + 1 < count;) {
    size_t to = from;
    while (to + 1 < count && layers[to] == layers[from]) ++to;
    if (to - from > length) best = from, length = to - from;
    from = std::max(to, from + 1);
  }
  std::string text = "E";
  for (size_t s = 0; s < count; ++s) {
    if (length >= 3 && s == best) {
      text += "(" + stage_text(layers[s]) + "|)*" + std::to_string(length);
      s += length - 1;
      continue;
    }
    text += stage_text(layers[s]);
    if (s + 1 < count) text += '|';
  }
  return text + std::string(static_cast<size_t>(mtp), 'm') + "L";
}

std::vector<int32_t> torchtitan_default(int32_t stages, int32_t layers, int32_t first_less, int32_t last_less) {
  const int32_t all = layers + first_less + last_less;
  std::vector<int32_t> out;
  for (int32_t s = 0; s < stages; ++s) out.push_back(all / stages + (s < all % stages ? 1 : 0));
  out.front() -= first_less;
  out.back() -= last_less;
  return out;
}

}  // namespace stageline::plan
