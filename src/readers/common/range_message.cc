#include "readers/common/range_message.h"

#include <cctype>

namespace stageline {
namespace {

constexpr std::array<std::string_view, 6> kMicroBatch = {"current_microbatch", "micro_batch",   "microbatch", "mb",
                                                         "microbatch_id",      "micro_batch_id"};
constexpr std::array<std::string_view, 6> kChunk = {"chunk",          "vp",       "model_chunk",
                                                    "model_chunk_id", "vp_stage", "chunk_id"};
constexpr std::array<std::string_view, 4> kStage = {"stage", "pp_rank", "pp_stage", "stage_id"};
constexpr std::array<std::string_view, 3> kStep = {"step", "iteration", "iter"};

template <size_t N> bool one_of(std::string_view key, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, key) != names.end();
}

std::optional<int32_t> small_number(std::string_view text) {
  const auto value = parse_int(trim(text));
  if (!value || *value < 0 || *value > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(*value);
}

// Returns true when the key is known here and its value is a number.
bool take(RangeText& out, std::string_view key, std::string_view value) {
  const auto number = small_number(value);
  if (!number) return false;
  if (one_of(key, kMicroBatch)) return out.micro_batch = *number, true;
  if (one_of(key, kChunk)) return out.chunk = *number, true;
  if (one_of(key, kStage)) return out.stage = *number, true;
  if (one_of(key, kStep)) return out.step = *number, true;
  return false;
}

// Returns a quoted text, or a bare word or number up to a separator. Nested values are returned as they are written.
std::string next_value(std::string_view text, size_t& at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  std::string out;
  if (at < text.size() && (text[at] == '\'' || text[at] == '"')) {
    const char quote = text[at++];
    while (at < text.size() && text[at] != quote) {
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      out += text[at++];
    }
    if (at < text.size()) ++at;
    return out;
  }
  int depth = 0;
  while (at < text.size() && (depth > 0 || (text[at] != ',' && text[at] != ':' && text[at] != '}'))) {
    if (text[at] == '[' || text[at] == '(' || text[at] == '{') ++depth;
    if (text[at] == ']' || text[at] == ')' || text[at] == '}') --depth;
    out += text[at++];
  }
  return std::string(trim(out));
}

bool parse_members(std::string_view text, RangeText& out) {
  size_t at = 1;
  while (at < text.size() && text[at] != '}' && out.members.size() < kMaxMembers) {
    std::string key = next_value(text, at);
    while (at < text.size() && text[at] == ' ') ++at;
    if (at >= text.size() || text[at] != ':') return !out.members.empty();
    ++at;
    std::string value = next_value(text, at);
    take(out, key, value);
    if (key == "name") out.name = value;
    out.members.emplace_back(std::move(key), std::move(value));
    while (at < text.size() && text[at] != ',' && text[at] != '}') ++at;
    if (at < text.size() && text[at] == ',') ++at;
    while (at < text.size() && text[at] == ' ') ++at;
  }
  return !out.members.empty();
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

// Parses "forward_step mb=3 chunk: 1": the name ends before the first known key.
void parse_words(std::string_view text, RangeText& out) {
  size_t name_end = text.size();
  for (size_t at = 0; at < text.size();) {
    if (!is_word(text[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < text.size() && is_word(text[at])) ++at;
    const std::string_view key = text.substr(begin, at - begin);
    size_t value = at;
    while (value < text.size() && text[value] == ' ') ++value;
    if (value >= text.size() || (text[value] != '=' && text[value] != ':')) continue;
    ++value;
    while (value < text.size() && text[value] == ' ') ++value;
    size_t end = value;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (end == value || !take(out, key, text.substr(value, end - value))) continue;
    name_end = std::min(name_end, begin);
    at = end;
  }
  std::string_view name = text.substr(0, name_end);
  while (!name.empty() && name_end < text.size() && !is_word(name.back())) name.remove_suffix(1);
  out.name = std::string(name.empty() ? text : name);
}

}  // namespace

std::string_view RangeText::member(std::string_view key) const {
  for (const auto& [known, value] : members)
    if (known == key) return value;
  return {};
}

RangeText parse_range_message(std::string_view message) {
  RangeText out;
  std::string plain;
  std::string_view text = trim(message);
  if (text.starts_with("{\\\"") || text.starts_with("{ \\\"")) {
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] != '\\' || i + 1 >= text.size() || text[i + 1] != '"') plain += text[i];
    text = plain;
  }
  if (text.starts_with("{") && parse_members(text, out)) {
    if (out.name.empty()) out.name = std::string(out.member("opName"));
    if (out.name.empty()) out.name = std::string(text);
    return out;
  }
  out.members.clear();
  parse_words(text, out);
  return out;
}

}  // namespace stageline
